"""Convert the content blocks of Claude, which exports of claude.ai and Anthropic's API have."""

from collections.abc import Iterator, Mapping
from typing import Any

from mastra_memory.content import data_uris, normalization
from mastra_memory.importers import coercion
from mastra_memory.importers.chat_messages import build_reasoning_part
from mastra_memory.importers.conversation import PartDict, build_source_part, build_upload_part

_IGNORED_BLOCKS = frozenset({"token_budget", "flag"})


def convert_blocks(content: Any, message_id: str) -> list[PartDict]:
    """Return the parts of a content: a text, or a list of blocks.

    The result of a tool is stored in its call if both are in this message. An unknown type of block
    becomes a data part.

    Args:
        content: The content of the message.
        message_id: Identifies calls that have no id.
    """
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    parts: list[PartDict] = []
    for index, block in enumerate(coercion.to_mappings(content)):
        _add_block(parts, block, f"{message_id}:{index}")
    return parts


def _add_block(parts: list[PartDict], block: Mapping[str, Any], block_id: str) -> None:
    kind = coercion.to_text(block.get("type"))
    match kind:
        case "text":
            if coercion.to_text(block.get("text")).strip():
                parts.append({"type": "text", "text": block["text"]})
                parts.extend(_convert_citations(block))
        case "thinking":
            parts.append(build_reasoning_part(coercion.to_text(block.get("thinking"))))
        case "redacted_thinking":
            details = [{"type": "redacted", "data": block.get("data")}]
            parts.append({"type": "reasoning", "reasoning": "", "details": details})
        case "image" | "document" if isinstance(block.get("source"), Mapping):
            parts.append(_convert_file(block, kind))
        case _ if kind.endswith("tool_use"):  # also `server_tool_use` and `mcp_tool_use`
            call_id = coercion.to_text(block.get("id")) or block_id
            tool = coercion.to_text(block.get("name")) or "tool"
            parts.append(normalization.build_call_part(call_id, tool, block.get("input") or {}))
        case _ if is_result(block):
            _add_result(parts, block, block_id)
        case _ if kind not in _IGNORED_BLOCKS:
            parts.append({"type": f"data-claude-{kind or 'block'}", "data": dict(block)})


def is_result(block: Mapping[str, Any]) -> bool:
    """Return whether a block is the result of a tool, such as `web_search_tool_result`."""
    return coercion.to_text(block.get("type")).endswith("tool_result")


def _convert_citations(block: Mapping[str, Any]) -> Iterator[PartDict]:
    """Yield a source part for each page that a text cites."""
    pages: dict[str, str] = {}
    for citation in coercion.to_mappings(block.get("citations")):
        page = coercion.to_mapping(citation.get("details")) or citation
        if url := coercion.to_text(page.get("url")):
            pages.setdefault(url, coercion.to_text(page.get("title")))
    return (build_source_part(url, title) for url, title in pages.items())


def _convert_file(block: Mapping[str, Any], kind: str) -> PartDict:
    source = block["source"]
    name, mime_type = (
        coercion.to_text(block.get("title")),
        coercion.to_text(source.get("media_type")),
    )
    text = coercion.to_text(source.get("data"))
    if source.get("type") == "text" and text:
        metadata = coercion.drop_empty(filename=name, mimeType=mime_type)
        return {"type": "text", "text": text, **coercion.drop_empty(metadata=metadata)}
    data = coercion.to_text(source.get("url"))
    if source.get("type") == "base64" and text:
        data = data_uris.build_data_uri(text, mime_type or "application/octet-stream")
    if not data:
        file_id = coercion.to_text(source.get("file_id"))
        return build_upload_part(name or file_id or kind, mime_type, id=file_id)
    if kind == "image":
        return {"type": "image", "image": data}
    extra = coercion.drop_empty(filename=name, mimeType=mime_type)
    return {"type": "file", "data": data, **extra}


def _add_result(parts: list[PartDict], block: Mapping[str, Any], block_id: str) -> None:
    """Store the result of a call in the message's own parts.

    Without the id of a call, the result belongs to the oldest call of its tool without a result.
    """
    tool = coercion.to_text(block.get("name"))
    call_id = coercion.to_text(block.get("tool_use_id"))
    result = convert_result(block.get("content"))
    calls = [part["toolInvocation"] for part in parts if "toolInvocation" in part]
    same_id = [call for call in calls if call_id and call["toolCallId"] == call_id]
    without_result = [c for c in calls if c["state"] == "call" and tool in ("", c["toolName"])]
    if call := next(iter(same_id or without_result), None):
        normalization.set_result(call, result, failed=block.get("is_error") is True)
    else:
        parts.append(normalization.build_result_part(call_id or block_id, tool or "tool", result))


def convert_result(content: Any) -> Any:
    """Return the text of a result that consists of text blocks, and any other result unchanged."""
    blocks = coercion.to_mappings(content)
    if blocks and all(block.get("type") == "text" for block in blocks):
        return "\n".join(coercion.to_text(block.get("text")) for block in blocks)
    return content
