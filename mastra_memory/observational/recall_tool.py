"""The `recall` tool: an agent reads the messages that an observation was made of.

This module parses the arguments and formats the answers. The functions that read threads and
messages are passed in, because they belong to layers above this one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mastra_memory.content import tokens, transcript
from mastra_memory.content.truncation import truncate_at_word
from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput, Issue, MastraMemoryError
from mastra_memory.observational import groups
from mastra_memory.observational.group_search import GroupHit
from mastra_memory.types import StoredMessage

TOOL_NAME = "recall"
MAX_ANSWER_TOKENS = 2_000
"""The largest answer of the tool."""
TOKENS_PER_GROUP = 60
"""Tokens of the line that says where a group of observations comes from."""
MAX_PAGE = 50
MAX_LIMIT = 20
MAX_LOW_DETAIL_CHARS = 300
"""With low detail, each entry of a message is cut to this many characters."""
MODES = ("messages", "threads", "search")
DETAILS = ("low", "high")
ANCHORS = ("start", "end")
CURRENT_THREAD = "current"

DESCRIPTION = """\
Read what was said earlier, word for word. Observations end with the range of the messages they \
were made of: give the first id of a range as `cursor` to read them. Mode `threads` lists \
conversations, mode `search` finds observations \
and messages about something. An answer is limited in length: read on \
with `page`, or one message with `cursor`, `partIndex` and `charOffset`."""

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": list(MODES)},
        "query": {"type": "string", "description": "What to search for, in mode search."},
        "threadId": {
            "type": "string",
            "description": "The conversation: an id, or `current`. Only if memory is shared.",
        },
        "cursor": {"type": "string", "description": "The id of a message to start from."},
        "anchor": {
            "type": "string",
            "enum": list(ANCHORS),
            "description": "Where to start without a cursor: the first or the last messages.",
        },
        "page": {
            "type": "integer",
            "minimum": -MAX_PAGE,
            "maximum": MAX_PAGE,
            "description": "1 begins at the cursor, 2 is after that, -1 is before the cursor.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
        "detail": {"type": "string", "enum": list(DETAILS)},
        "partType": {"type": "string", "description": "Only parts of this type, such as `text`."},
        "toolName": {"type": "string", "description": "Only calls of this tool."},
        "partIndex": {"type": "integer", "minimum": 0},
        "charOffset": {"type": "integer", "minimum": 0},
        "before": {"type": "string", "description": "Only before this ISO date and time."},
        "after": {"type": "string", "description": "Only after this ISO date and time."},
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """The checked arguments of one call of the tool."""

    mode: str = "messages"
    query: str = ""
    thread_id: str = CURRENT_THREAD
    cursor: str = ""
    anchor: str = "start"
    page: int = 1
    limit: int = MAX_LIMIT
    detail: str = "low"
    part_type: str = ""
    tool_name: str = ""
    part_index: int | None = None
    char_offset: int = 0
    before: datetime | None = None
    after: datetime | None = None

    @property
    def is_backwards(self) -> bool:
        """Whether the page lies before the cursor, or counts from the end."""
        return self.page < 0 or (not self.cursor and self.anchor == "end")

    @property
    def page_number(self) -> int:
        """The number of the page in its direction, from 0."""
        return abs(self.page) - 1


def parse_request(arguments: Mapping[str, Any]) -> RecallRequest:
    """Return the checked arguments. Page 0 means page 1, as in Mastra.

    Raises:
        InvalidInput: An argument has the wrong type or is out of range.
    """
    page = _read_number(arguments, "page", 1, -MAX_PAGE, MAX_PAGE)
    part_index = arguments.get("partIndex")
    return RecallRequest(
        mode=_read_choice(arguments, "mode", MODES, "messages"),
        query=_read_text(arguments, "query"),
        thread_id=_read_text(arguments, "threadId") or CURRENT_THREAD,
        cursor=_read_cursor(arguments),
        anchor=_read_choice(arguments, "anchor", ANCHORS, "start"),
        page=page or 1,
        limit=_read_number(arguments, "limit", MAX_LIMIT, 1, MAX_LIMIT),
        detail=_read_choice(arguments, "detail", DETAILS, "low"),
        part_type=_read_text(arguments, "partType"),
        tool_name=_read_text(arguments, "toolName"),
        part_index=None
        if part_index is None
        else _read_number(arguments, "partIndex", 0, 0, 1_000_000),
        char_offset=_read_number(arguments, "charOffset", 0, 0, 1_000_000_000),
        before=_read_time(arguments, "before"),
        after=_read_time(arguments, "after"),
    )


def _read_choice(
    arguments: Mapping[str, Any], name: str, choices: Sequence[str], default: str
) -> str:
    value = arguments.get(name)
    if value is None:
        return default
    if value not in choices:
        raise _build_error(name, f"must be one of {', '.join(choices)}")
    return str(value)


def _read_text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise _build_error(name, "must be text")
    return (value or "").strip()


def _read_cursor(arguments: Mapping[str, Any]) -> str:
    """Return the id of a message. An agent may also give a whole range, which starts there."""
    segments = groups.parse_range(_read_text(arguments, "cursor"))
    return segments[0][0] if segments else ""


def _read_number(
    arguments: Mapping[str, Any], name: str, default: int, lowest: int, highest: int
) -> int:
    value = arguments.get(name)
    if value is None:
        return default
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if not whole or not lowest <= value <= highest:
        raise _build_error(name, f"must be a whole number from {lowest} to {highest}")
    return int(value)


def _read_time(arguments: Mapping[str, Any], name: str) -> datetime | None:
    text = _read_text(arguments, name)
    try:
        return times.parse_time(text) if text else None
    except ValueError:
        raise _build_error(name, "must be an ISO date and time") from None


def _build_error(name: str, reason: str) -> InvalidInput:
    return InvalidInput(f"{name} {reason}", [Issue(name, reason)])


@dataclass(frozen=True, slots=True)
class RecallTool:
    """The definition of the tool, which any agent library can use."""

    handler: Callable[[Mapping[str, Any]], dict[str, Any]]
    """Returns `{"success": bool, "text"?, "message"?, ...}`; it raises no exception for wrong
    arguments."""
    name: str = TOOL_NAME
    description: str = DESCRIPTION

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return PARAMETERS


def build_tool(read: Callable[[RecallRequest], dict[str, Any]]) -> RecallTool:
    """Return the tool whose requests are answered by `read`."""

    def handle(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"success": True, **read(parse_request(arguments))}
        except MastraMemoryError as error:
            return {"success": False, "message": str(error)}

    return RecallTool(handle)


def format_messages(
    messages: Sequence[StoredMessage],
    request: RecallRequest,
    *,
    max_tokens: int = MAX_ANSWER_TOKENS,
) -> dict[str, Any]:
    """Return the text of the messages as far as it fits, and where it ends if it is cut.

    Each entry begins with the id of its message, so that the agent can go on from there.
    """
    counter = tokens.get_token_counter()
    entries: list[str] = []
    used = 0
    for message in messages:
        entry = _format_message(message, request)
        if not entry:
            continue
        size = counter.text(entry)
        if used + size > max_tokens:
            if not entries:
                entries.append(tokens.truncate_to_tokens(entry, max_tokens))
            return {"text": "\n\n".join(entries), "truncated": True, "nextCursor": message.id}
        entries.append(entry)
        used += size
    return {"text": "\n\n".join(entries) or "(nothing here)"}


def format_search(
    hits: Sequence[GroupHit], others: Sequence[StoredMessage], request: RecallRequest
) -> dict[str, Any]:
    """Return what a search found: groups of observations, then messages that are in no group.

    `results` has the groups as Mastra returns them.
    """
    shown: list[GroupHit] = []
    used = 0
    for hit in hits:
        used += hit.tokens + TOKENS_PER_GROUP
        if used > MAX_ANSWER_TOKENS and shown:
            break
        shown.append(hit)
    used = sum(hit.tokens + TOKENS_PER_GROUP for hit in shown)
    answer: dict[str, Any] = {"text": ""}
    if (others and used < MAX_ANSWER_TOKENS) or not shown:
        answer = format_messages(others, request, max_tokens=MAX_ANSWER_TOKENS - used)
    texts = [tokens.truncate_to_tokens(hit.format(), MAX_ANSWER_TOKENS) for hit in shown]
    results = [
        {
            "threadId": hit.thread_id,
            "score": hit.score,
            "groupId": hit.group_id,
            "range": hit.range,
            "text": hit.text,
            "observedAt": times.format_time(hit.observed_at),
        }
        for hit in shown
    ]
    text = "\n\n".join(filter(None, [*texts, answer["text"]]))
    return {**answer, "text": text, "results": results}


def _format_message(message: StoredMessage, request: RecallRequest) -> str:
    lines = [
        f"{line.label}: {text}"
        for line in transcript.iter_lines([_select_parts(message, request)])
        if (text := _format_line(line, request).strip())
    ]
    if not lines:
        return ""
    return "\n".join([f"[{message.id}] {message.created} {message.role}", *lines])


def _select_parts(message: StoredMessage, request: RecallRequest) -> StoredMessage:
    """Return the message with only the parts that the agent asks for."""
    if request.part_index is None and not request.part_type and not request.tool_name:
        return message
    content = message.content
    parts = [
        part
        for index, part in enumerate(content.get("parts") or [])
        if request.part_index in (None, index)
        and request.part_type in ("", part.get("type"))
        and request.tool_name in ("", (part.get("toolInvocation") or {}).get("toolName"))
    ]
    selected = {"format": 2, "parts": parts or [{"type": "step-start"}]}
    return message._replace(content_json=json_text.dumps(selected))


def _format_line(line: transcript.TranscriptLine, request: RecallRequest) -> str:
    text = transcript.format_line(line)
    if request.part_index is not None:
        return text[request.char_offset :]
    return truncate_at_word(text, MAX_LOW_DETAIL_CHARS) if request.detail == "low" else text
