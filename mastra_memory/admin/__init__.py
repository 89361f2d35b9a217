"""The admin site: one module for each model, and the pages of a conversation."""

from mastra_memory.admin import (  # noqa: F401  (each module registers its ModelAdmin)
    embedding_request,
    message,
    model_usage,
    observational_record,
    tags_and_rubric,
    thread,
    working_memory,
)
