"""The admin: one file a model, and the conversation page."""

from mastra_memory.admin import (  # noqa: F401  (each module registers its ModelAdmin)
    embedding_request,
    model_usage,
    observational_record,
    tags_and_rubric,
    thread,
    working_memory,
)
