"""Export CSV for spreadsheets, with one row for each message."""

import csv
import io
from collections.abc import Callable, Sequence
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

NAME, SUFFIX = "csv", ".csv"

HEADER = (
    "thread_id",
    "resource_id",
    "thread_title",
    "message_id",
    "created_at",
    "role",
    "text",
    "tools",
)
_BYTE_ORDER_MARK = "\ufeff"
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


def export(
    selection: ExportSelection, write: WriteBytes, after_thread: Callable[[], None]
) -> ExportCounts:
    """Write a header and one row for each selected message, oldest thread first.

    Spreadsheets recognize UTF-8 by the byte order mark. A cell that they would run as a formula
    gets a leading apostrophe.
    """
    counts = ExportCounts()
    write((_BYTE_ORDER_MARK + _format_row(HEADER)).encode())
    for thread, messages in iterate_conversations(selection):
        for message in messages:
            write(_format_row(_message_cells(thread, message)).encode())
            counts.messages += 1
        counts.threads += 1
        after_thread()
    return counts


def _message_cells(thread: ExportedThread, message: ExportedMessage) -> Sequence[str]:
    return (
        thread.id,
        thread.resource_id,
        thread.title,
        message.id,
        times.format_time(message.created_at),
        message.role,
        message.text or _format_files(message),
        _encode_tool_calls(message),
    )


def _format_files(message: ExportedMessage) -> str:
    """Return the names of the files of a message without a text."""
    if '"file"' not in message.content_json and '"image"' not in message.content_json:
        return ""
    return part_types.format_file_names(part_types.read_parts(message.content))


def _encode_tool_calls(message: ExportedMessage) -> str:
    """Return the tool calls as JSON, or an empty string if there are none."""
    if '"toolInvocation"' not in message.content_json:
        return ""
    calls: list[dict[str, Any]] = [
        {"name": call.name, "state": call.state, "args": call.args, "result": call.result}
        for call in part_types.read_parts(message.content)
        if isinstance(call, part_types.ToolCall)
    ]
    return orjson.dumps(calls).decode() if calls else ""


def _format_row(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(_escape_formula(cell) for cell in cells)
    return line.getvalue()


def _escape_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA_PREFIXES) else cell
