"""The interface to text models. It records what each call used."""

from mastra_memory.llm.text_models import (
    Purpose,
    TextModel,
    TextReply,
    TextRequest,
    generate,
    override_model,
)

__all__ = ["Purpose", "TextModel", "TextReply", "TextRequest", "generate", "override_model"]
