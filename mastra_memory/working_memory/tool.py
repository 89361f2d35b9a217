"""Build the tool that an agent uses to update its working memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.working_memory import json_merge, patching

TOOL_NAME = "updateWorkingMemory"

WriteContent = Callable[[str, Sequence[str]], int]
"""A function that stores the Markdown, or merges a partial JSON object after it has removed the
keys at some paths. It returns the version."""
ToolResult = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MemoryTool:
    """A tool definition that any agent library can use."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments."""
    handler: Callable[[Mapping[str, Any]], ToolResult]
    """Returns `{"success": bool}`, and sometimes a text for the model in `message` or `reason`.
    Invalid arguments do not raise an exception."""


def build_tool(
    options: WorkingMemoryOptions, *, write: WriteContent, read: Callable[[], str | None]
) -> MemoryTool:
    """Return the tool that updates the working memory of an agent.

    Args:
        options: The agent's options. They select the arguments of the tool.
        write: Stores an update.
        read: Returns the current text, or None.
    """
    if options.schema is not None:
        return MemoryTool(
            TOOL_NAME,
            _MERGE_DESCRIPTION,
            _build_merge_parameters(options.schema),
            _build_merge_handler(write),
        )
    if options.version == "vnext":
        return MemoryTool(
            TOOL_NAME,
            _PATCH_DESCRIPTION,
            patching.PARAMETERS,
            _build_patch_handler(options, write, read),
        )
    return MemoryTool(
        TOOL_NAME, _REPLACE_DESCRIPTION, _TEXT_PARAMETERS, _build_replace_handler(write)
    )


_REPLACE_DESCRIPTION = """\
Keep what is worth remembering about the user and this work. Give the whole text, \
not only what changed: it replaces what was kept. Call this whenever something new or corrected \
comes up, without mentioning it to the user."""
_MERGE_DESCRIPTION = """\
Keep what is worth remembering about the user and this work. Give only what changed: \
objects are merged, an array replaces the old one, null changes nothing. Name in remove what is \
no longer true. Call this whenever \
something new or corrected comes up, without mentioning it to the user."""
_PATCH_DESCRIPTION = """\
Add to what is kept about the user and this work, or correct a part of it. Call \
this whenever something new or corrected comes up, without mentioning it to the user."""

_TEXT_PARAMETERS = {
    "type": "object",
    "properties": {"memory": {"type": "string", "description": "The whole text, in Markdown."}},
    "required": ["memory"],
    "additionalProperties": False,
}


def _build_merge_parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tool's parameters: nothing is required, and everything may be null.

    A null changes nothing, because models must give all keys under strict schemas. Keys are removed
    by their paths in `remove`.

    Definitions are moved to the top level, to which `$ref` points.
    """
    memory_schema = {
        key: part for key, part in schema.items() if key not in ("$defs", "definitions")
    }
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "memory": {**_make_optional(memory_schema), "description": "Only what changed."},
            "remove": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Paths of keys to remove, for example `job.title`.",
            },
        },
        "required": ["memory"],
    }
    for key in ("$defs", "definitions"):
        if key in schema:
            parameters[key] = {name: _make_optional(part) for name, part in schema[key].items()}
    return parameters


def _make_optional(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    changed = {key: part for key, part in schema.items() if key not in ("required", "$schema")}
    if isinstance(changed.get("properties"), Mapping):
        changed["properties"] = {
            name: {"anyOf": [_make_optional(part), {"type": "null"}]}
            for name, part in changed["properties"].items()
        }
    if isinstance(changed.get("items"), Mapping):
        changed["items"] = _make_optional(changed["items"])
    return changed


def _write_and_report(write: WriteContent, content: str, remove: Sequence[str] = ()) -> ToolResult:
    try:
        write(content, remove)
    except InvalidInput as error:
        return {"success": False, "message": str(error)}
    return {"success": True}


def _build_replace_handler(write: WriteContent) -> Callable[[Mapping[str, Any]], ToolResult]:
    def handle(arguments: Mapping[str, Any]) -> ToolResult:
        given = arguments.get("memory")
        if not isinstance(given, str):
            return {"success": False, "message": "memory must be a string with the whole text"}
        return _write_and_report(write, given)

    return handle


def _build_merge_handler(write: WriteContent) -> Callable[[Mapping[str, Any]], ToolResult]:
    def handle(arguments: Mapping[str, Any]) -> ToolResult:
        given, remove = arguments.get("memory"), arguments.get("remove")
        remove = [remove] if isinstance(remove, str) else remove or []
        if not isinstance(remove, list) or not all(isinstance(path, str) for path in remove):
            return {"success": False, "message": "remove must be a list of paths"}
        content = _format_update(given)
        if not (content or remove):
            return {"success": True, "message": "memory is unchanged"}
        return _write_and_report(write, content, remove)

    return handle


def _format_update(given: Any) -> str:
    """Return the JSON text of an update without nulls; empty if nothing is left."""
    if isinstance(given, str):
        try:
            given = json_text.loads(given)
        except InvalidInput:
            return str(given)  # It is refused with a message for the model.
    update = json_merge.drop_nulls(given)
    return "" if update is None or (update == {} != given) else json_text.dumps(update)


def _build_patch_handler(
    options: WorkingMemoryOptions, write: WriteContent, read: Callable[[], str | None]
) -> Callable[[Mapping[str, Any]], ToolResult]:
    def handle(arguments: Mapping[str, Any]) -> ToolResult:
        try:
            new_content = patching.apply_patch(read() or "", options.template.strip(), arguments)
        except InvalidInput as error:
            return {"success": False, "reason": str(error)}
        return _write_and_report(write, new_content)

    return handle
