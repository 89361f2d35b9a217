"""The port to text models: ask one, get its answer, with what it used on record."""

from mastra_memory.llm.text_models import (
    Purpose,
    TextModel,
    TextReply,
    TextRequest,
    generate,
    override_model,
)

__all__ = ["Purpose", "TextModel", "TextReply", "TextRequest", "generate", "override_model"]
