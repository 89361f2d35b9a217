"""Convert items of OpenAI's Responses API: messages, reasoning, tool calls and their results."""

from collections.abc import Mapping, Sequence
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.importers import coercion
from mastra_memory.importers.chat_messages import (
    build_reasoning_part,
    convert_content,
    convert_result,
    parse_arguments,
)
from mastra_memory.importers.conversation import PartDict, build_source_part

_BUILT_IN_CALLS = {
    "web_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "computer_call": "action",
    "image_generation_call": "revised_prompt",
    "local_shell_call": "action",
}
"""Calls of OpenAI's own tools, with the key of their arguments."""


def is_result(item: Mapping[str, Any]) -> bool:
    """Return whether an item is the result of a tool, such as `function_call_output`."""
    return coercion.to_text(item.get("type")).endswith("_call_output")


def get_item_role(item: Mapping[str, Any]) -> str:
    """Return the role of a message; other items belong to the assistant."""
    return coercion.to_text(item.get("role")) or "assistant"


def read_result(item: Mapping[str, Any]) -> Any:
    """Return the result in an item for which `is_result` is true."""
    return convert_result(item.get("output"))


def convert_items(items: Sequence[Mapping[str, Any]], message_id: str) -> list[PartDict]:
    """Return the parts of a message that consists of these items.

    The result of a tool is stored in its call if both are among the items.
    """
    parts: list[PartDict] = []
    calls: dict[str, dict[str, Any]] = {}
    for index, item in enumerate(items):
        call_id = coercion.to_text(item.get("call_id"))
        if is_result(item) and call_id in calls:
            normalization.set_result(calls[call_id], read_result(item))
            continue
        for part in _convert_item(item, f"{message_id}:{index}"):
            parts.append(part)
            if "toolInvocation" in part:
                calls[part["toolInvocation"]["toolCallId"]] = part["toolInvocation"]
    return parts


def _convert_item(item: Mapping[str, Any], item_id: str) -> list[PartDict]:
    kind = coercion.to_text(item.get("type")) or "message"
    call_id = coercion.to_text(item.get("call_id")) or coercion.to_text(item.get("id")) or item_id
    if kind == "message":
        return [*convert_content(item.get("content")), *_convert_citations(item.get("content"))]
    if kind == "reasoning":
        texts = [
            coercion.to_text(block.get("text"))
            for key in ("summary", "content")
            for block in coercion.to_mappings(item.get(key))
        ]
        text = "\n\n".join(filter(None, texts))
        return [build_reasoning_part(text)] if text else []
    if is_result(item):
        return [normalization.build_result_part(call_id, "tool", read_result(item))]
    if kind in _BUILT_IN_CALLS:
        return [_convert_built_in_call(item, kind, call_id)]
    if kind.endswith("_call"):  # `function_call`, `custom_tool_call`, `mcp_call`
        arguments = parse_arguments(item.get("arguments", item.get("input")))
        name = coercion.to_text(item.get("name")) or kind
        part = normalization.build_call_part(call_id, name, arguments)
        if item.get("output") is not None:
            normalization.set_result(part["toolInvocation"], read_result(item))
        return [part]
    return [{"type": f"data-openai-{kind}", "data": dict(item)}]


def _convert_built_in_call(item: Mapping[str, Any], kind: str, call_id: str) -> PartDict:
    """Return the call of one of OpenAI's own tools. Their results are in the item itself."""
    key = _BUILT_IN_CALLS[kind]
    args = item.get(key)
    args = args if isinstance(args, Mapping) else coercion.drop_empty(**{key: args})
    part = normalization.build_call_part(call_id, kind.removesuffix("_call"), args)
    results = item.get("results", item.get("outputs"))
    if results is not None or item.get("status") == "completed":
        normalization.set_result(part["toolInvocation"], results)
    return part


def _convert_citations(content: Any) -> list[PartDict]:
    """Return a source part for each page that the texts of a message cite."""
    pages: dict[str, str] = {}
    for block in coercion.to_mappings(content):
        for annotation in coercion.to_mappings(block.get("annotations")):
            page = coercion.to_mapping(annotation.get("url_citation")) or annotation
            if url := coercion.to_text(page.get("url")):
                pages.setdefault(url, coercion.to_text(page.get("title")))
    return [build_source_part(url, title) for url, title in pages.items()]
