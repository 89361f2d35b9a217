"""The admin: one file a model, and the conversation page."""

from mastra_memory.admin import (  # noqa: F401  (each registers itself)
    embedding_request,
    model_usage,
    observational_record,
    review,
    thread,
    working_memory,
)
