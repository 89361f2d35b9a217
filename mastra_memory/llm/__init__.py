"""Call text models, and record the tokens and cost of each call."""

from mastra_memory.llm.text_models import (
    Attachment,
    Purpose,
    TextModel,
    TextReply,
    TextRequest,
    generate,
    override_model,
)

__all__ = [
    "Attachment",
    "Purpose",
    "TextModel",
    "TextReply",
    "TextRequest",
    "generate",
    "override_model",
]
