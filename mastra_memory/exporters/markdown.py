"""Export human-readable Markdown, with a heading for each thread and each message."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
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
    """Write the selected threads, oldest first."""
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
    details = f"Thread `{thread.id}` of `{thread.resource_id}`, {_format_time(thread.created_at)}"
    return f"# {title}\n\n{details}\n\n"


def format_message(message: ExportedMessage) -> str:
    """Return the message as Markdown: a heading, then its parts, separated by blank lines."""
    blocks = [f"## {message.role}, {_format_time(message.created_at)}"]
    for part in part_types.read_parts(message.content):
        blocks.extend(_format_part(part))
    return "\n\n".join(blocks) + "\n\n"


def _format_time(moment: datetime) -> str:
    return times.format_time(moment)[:19].replace("T", " ") + " UTC"


def _format_part(part: part_types.Part) -> Iterator[str]:
    match part:
        case part_types.TextPart():
            yield part.text.strip()
        case part_types.ReasoningPart():
            yield "\n".join(f"> {line}".rstrip() for line in part.text.strip().splitlines())
        case part_types.ToolCall():
            yield f"Tool call `{part.name}` ({part.state})"
            yield _format_block(part.args)
            if part.state != "call":
                yield _format_block(part.error or part.result)
        case part_types.FilePart():
            name = part.name or part.mime_type or "file"
            yield f"[{name}](<{part.address}>)" if part.address else f"[{name}, {part.size} B]"
        case part_types.SourcePart():
            yield f"Source: [{part.title}](<{part.address}>)"
        case part_types.UnknownPart():
            yield _format_block({"kind": part.kind, "value": part.value})


def _format_block(value: Any) -> str:
    """Return a fenced block whose fence is longer than any backticks inside it."""
    is_text = isinstance(value, str)
    text = value if is_text else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{'' if is_text else 'json'}\n{text}\n{fence}"
