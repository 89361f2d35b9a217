"""What goes in front of a model."""

from mastra_memory.context.assembly import build, query_of
from mastra_memory.context.blocks import Block, Context, Kind

__all__ = ["Block", "Context", "Kind", "build", "query_of"]
