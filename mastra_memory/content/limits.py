"""Check the length of texts and lists before any work is done with them."""

from collections.abc import Mapping, Sized
from typing import Any

from mastra_memory import conf
from mastra_memory.db import json_text
from mastra_memory.db.identifiers import MAX_ID_BYTES
from mastra_memory.exceptions import InvalidInput, Issue


def check_count(items: Sized, limit: int, field: str) -> None:
    """Raise `InvalidInput` for a list of more than `limit` items."""
    if len(items) > limit:
        reason = f"may hold at most {limit} items, not {len(items)}"
        raise InvalidInput(f"{field} {reason}", [Issue(field, reason)])


def check_title(title: str) -> str:
    """Return the cleaned title, or raise `InvalidInput` if it is over `MAX_TITLE_LENGTH`."""
    limit = conf.app_settings().MAX_TITLE_LENGTH
    if len(title) > limit:
        reason = f"may be at most {limit} characters long, not {len(title)}"
        raise InvalidInput(f"title {reason}", [Issue("title", reason)])
    return json_text.clean_text(title)


def check_parts(content: Mapping[str, Any], max_parts: int) -> None:
    """Check the number of parts of a message and the length of their tool call ids.

    Raises:
        InvalidInput: A part is invalid. The error names it.
    """
    parts = content["parts"]
    check_count(parts, max_parts, "content.parts")
    for index, part in enumerate(parts):
        call = part.get("toolInvocation")
        call_id = call.get("toolCallId") if isinstance(call, Mapping) else part.get("toolCallId")
        if isinstance(call_id, str) and len(call_id) > MAX_ID_BYTES:
            field = f"content.parts.{index}.toolCallId"
            reason = f"may be at most {MAX_ID_BYTES} characters long, not {len(call_id)}"
            raise InvalidInput(f"{field} {reason}", [Issue(field, reason)])


def check_size(text: str, limit: int, field: str) -> None:
    """Raise `InvalidInput` for a text of more than `limit` bytes in UTF-8."""
    size = len(text) if text.isascii() or len(text) > limit else len(text.encode())
    if size > limit:
        reason = f"may be at most {limit} bytes long"
        raise InvalidInput(f"{field} {reason}", [Issue(field, reason)])
