"""Working memory: a text that is stored for a thread or a resource, with its revisions."""

from mastra_memory.working_memory.prompts import build_system_text, render_data
from mastra_memory.working_memory.revisions import list_revisions, restore_revision
from mastra_memory.working_memory.schema import build_empty_value
from mastra_memory.working_memory.storage import (
    METADATA_KEY,
    Owner,
    find_content,
    find_for_resource,
    find_for_thread,
    pop_from_metadata,
    save_for_resource,
    save_for_thread,
)
from mastra_memory.working_memory.template import Template, build_template
from mastra_memory.working_memory.tool import MemoryTool, build_tool
from mastra_memory.working_memory.updates import UpdateMode, update_content

__all__ = [
    "METADATA_KEY",
    "MemoryTool",
    "Owner",
    "Template",
    "UpdateMode",
    "build_empty_value",
    "build_system_text",
    "build_template",
    "build_tool",
    "find_content",
    "find_for_resource",
    "find_for_thread",
    "list_revisions",
    "pop_from_metadata",
    "render_data",
    "restore_revision",
    "save_for_resource",
    "save_for_thread",
    "update_content",
]
