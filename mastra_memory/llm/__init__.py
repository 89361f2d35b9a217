"""Call text models, and record the tokens and cost of each call."""

from mastra_memory.llm.limits import UsageMeter, limit_usage
from mastra_memory.llm.text_models import (
    Attachment,
    Purpose,
    TextModel,
    TextReply,
    TextRequest,
    estimate_cost,
    generate,
    override_model,
)

__all__ = [
    "Attachment",
    "Purpose",
    "TextModel",
    "TextReply",
    "TextRequest",
    "UsageMeter",
    "estimate_cost",
    "generate",
    "limit_usage",
    "override_model",
]
