"""Call text models, and record the tokens and cost of each call."""

from mastra_memory.llm.text_models import (
    Purpose,
    TextModel,
    TextReply,
    TextRequest,
    generate,
    override_model,
)

__all__ = ["Purpose", "TextModel", "TextReply", "TextRequest", "generate", "override_model"]
