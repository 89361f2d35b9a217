"""Build the context of a turn: what the model reads before it answers."""

from mastra_memory.context.assembly import build_context, get_search_query
from mastra_memory.context.blocks import Block, BlockKind, Context

__all__ = ["Block", "BlockKind", "Context", "build_context", "get_search_query"]
