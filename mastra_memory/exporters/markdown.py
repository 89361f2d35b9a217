"""Markdown for people: a heading for each thread, one for each message."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from mastra_memory.content import part_types
from mastra_memory.db import times
from mastra_memory.exporters.output import ExportCounts, WriteBytes
from mastra_memory.exporters.selection import (
    ExportedMessage,
    ExportedThread,
    ExportSelection,
    iterate_conversations,
)

NAME, SUFFIX = "markdown", ".md"


def export(
    selection: ExportSelection, write: WriteBytes, after_thread: Callable[[], None]
) -> ExportCounts:
    """Write every thread, oldest first."""
    counts = ExportCounts()
    for thread, messages in iterate_conversations(selection):
        write(_format_heading(thread).encode())
        for message in messages:
            write(format_message(message).encode())
            counts.messages += 1
        counts.threads += 1
        after_thread()
    return counts


def _format_heading(thread: ExportedThread) -> str:
    title = " ".join(thread.title.split()) or thread.id
    facts = f"Thread `{thread.id}` of `{thread.resource_id}`, {_format_time(thread.created_at)}"
    return f"# {title}\n\n{facts}\n\n"


def format_message(message: ExportedMessage) -> str:
    """The message under its heading, each of its parts apart by a blank line."""
    shown = [
        text for piece in part_types.read_parts(message.content) for text in _format_piece(piece)
    ]
    return "\n\n".join([f"## {message.role}, {_format_time(message.created_at)}", *shown]) + "\n\n"


def _format_time(moment: Any) -> str:
    return times.format_time(moment)[:19].replace("T", " ") + " UTC"


def _format_piece(piece: part_types.Part) -> Iterator[str]:
    match piece:
        case part_types.TextPart():
            yield piece.text.strip()
        case part_types.ReasoningPart():
            yield "\n".join(f"> {line}".rstrip() for line in piece.text.strip().splitlines())
        case part_types.ToolCall():
            yield f"Tool call `{piece.name}` ({piece.state})"
            yield _format_block(piece.args)
            if piece.state != "call":
                yield _format_block(piece.error or piece.result)
        case part_types.FilePart():
            name = piece.name or piece.mime_type or "file"
            yield f"[{name}](<{piece.address}>)" if piece.address else f"[{name}, {piece.size} B]"
        case part_types.SourcePart():
            yield f"Source: [{piece.title}](<{piece.address}>)"
        case part_types.UnknownPart():
            yield _format_block({"kind": piece.kind, "value": piece.value})


def _format_block(value: Any) -> str:
    """A fenced block; the fence is longer than any within."""
    is_text = isinstance(value, str)
    text = value if is_text else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{'' if is_text else 'json'}\n{text}\n{fence}"
