"""Working memory: the text kept for a thread or a resource, with every text it was before."""

from mastra_memory.working_memory.prompts import system_text
from mastra_memory.working_memory.revisions import list_revisions, restore
from mastra_memory.working_memory.schema import empty_value
from mastra_memory.working_memory.storage import (
    KEY,
    Place,
    find_content,
    find_for_resource,
    find_for_thread,
    save_for_resource,
    save_for_thread,
    taken_out,
)
from mastra_memory.working_memory.template import Template, template_of
from mastra_memory.working_memory.tool import MemoryTool, tool_of
from mastra_memory.working_memory.updates import Mode, change

__all__ = [
    "KEY",
    "MemoryTool",
    "Mode",
    "Place",
    "Template",
    "change",
    "empty_value",
    "find_content",
    "find_for_resource",
    "find_for_thread",
    "list_revisions",
    "restore",
    "save_for_resource",
    "save_for_thread",
    "system_text",
    "taken_out",
    "template_of",
    "tool_of",
]
