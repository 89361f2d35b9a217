"""The blocks of a message in Claude exports, as parts of a message."""

from collections.abc import Mapping, Sequence
from typing import Any

from mastra_memory.content import parts
from mastra_memory.importers import coercion

_IGNORED = frozenset({"token_budget", "flag"})

Part = dict[str, Any]


def content_of(message: Mapping[str, Any], name: str) -> list[Part]:
    """The parts of a message; nothing for one that says nothing. Unknown blocks are kept whole.

    The text of attached documents becomes a text part of its own, with the file's name.
    """
    made: list[Part] = []
    for place, block in enumerate(coercion.objects(message.get("content"))):
        _add_block(made, block, f"{name}:{place}")
    text = coercion.text(message.get("text"))
    if text.strip() and not any(part["type"] == "text" for part in made):
        made.append({"type": "text", "text": text})
    for attachment in coercion.objects(message.get("attachments")):
        made.extend(_attachment(attachment))
    return made


def _add_block(made: list[Part], block: Mapping[str, Any], name: str) -> None:
    kind = coercion.text(block.get("type"))
    match kind:
        case "text":
            if coercion.text(block.get("text")).strip():
                made.append({"type": "text", "text": block["text"]})
        case "thinking":
            text = coercion.text(block.get("thinking"))
            details = [{"type": "text", "text": text}]
            made.append({"type": "reasoning", "reasoning": text, "details": details})
        case "tool_use":
            call_id = coercion.text(block.get("id")) or name
            tool = coercion.text(block.get("name")) or "tool"
            made.append(parts.tool_invocation(call_id, tool, block.get("input") or {}))
        case "tool_result":
            _add_result(made, block, name)
        case _ if kind not in _IGNORED:
            made.append({"type": f"data-claude-{kind or 'block'}", "data": dict(block)})


def _add_result(made: list[Part], block: Mapping[str, Any], name: str) -> None:
    """Join the result to the call that it names, else to the oldest open one of its tool."""
    tool = coercion.text(block.get("name"))
    call_id = coercion.text(block.get("tool_use_id"))
    result = _result(block.get("content"))
    calls = [part["toolInvocation"] for part in made if "toolInvocation" in part]
    named = [call for call in calls if call_id and call["toolCallId"] == call_id]
    open_ones = [c for c in calls if c["state"] == "call" and tool in ("", c["toolName"])]
    if call := next(iter(named or open_ones), None):
        parts.finish_call(call, result, failed=block.get("is_error") is True)
    else:
        made.append(parts.lone_result(call_id or name, tool or "tool", result))


def _result(content: Any) -> Any:
    """The text of a result made of text blocks; any other as it is."""
    blocks = coercion.objects(content)
    if blocks and all(block.get("type") == "text" for block in blocks):
        return "\n".join(coercion.text(block.get("text")) for block in blocks)
    return content


def _attachment(attachment: Mapping[str, Any]) -> Sequence[Part]:
    text = coercion.text(attachment.get("extracted_content"))
    if not text.strip():
        return ()
    facts = coercion.present(
        filename=coercion.text(attachment.get("file_name")),
        mimeType=coercion.text(attachment.get("file_type")),
    )
    return ({"type": "text", "text": text, "metadata": facts},)
