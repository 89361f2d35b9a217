"""The port to text models: ask one, get its answer, with what it used on record."""

from mastra_memory.llm.text_models import Purpose, Reply, Request, TextModel, ask, use

__all__ = ["Purpose", "Reply", "Request", "TextModel", "ask", "use"]
