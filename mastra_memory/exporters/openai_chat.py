"""OpenAI's chat messages: one line of JSON for each thread, as its fine-tuning takes them."""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

import orjson

from mastra_memory.content import part_types, tool_calls
from mastra_memory.db import json_text
from mastra_memory.exporters.output import ExportCounts, WriteBytes
from mastra_memory.exporters.selection import (
    ExportedMessage,
    ExportSelection,
    iterate_conversations,
)

NAME, SUFFIX = "openai", ".jsonl"
MAX_HELD_MESSAGES = 100
"""So many messages are held while a call waits for its result."""

ChatMessage = dict[str, Any]


def export(
    selection: ExportSelection, write: WriteBytes, after_thread: Callable[[], None]
) -> ExportCounts:
    """Write a line for each thread that has messages; signals and reasoning are left out.

    Each call is followed by its result. One that never ended is left out, unless it comes last.
    """
    counts = ExportCounts()
    for _, messages in iterate_conversations(selection):
        numbers = count(1)
        separator = b'{"messages":['
        for group in _group_messages(messages):
            for message in _merge_results(group.messages, is_last=group.is_last):
                for chat in convert_message(message, numbers):
                    write(separator + orjson.dumps(chat))
                    separator = b","
            counts.messages += len(group.messages)
        if separator == b",":
            write(b"]}\n")
            counts.threads += 1
        after_thread()
    return counts


class _MessageGroup(NamedTuple):
    """Messages of which the first is not told without the last."""

    messages: list[ExportedMessage]
    is_last: bool


def _group_messages(messages: Iterable[ExportedMessage]) -> Iterator[_MessageGroup]:
    """The messages of a thread, those from a call to its result together."""
    held: list[ExportedMessage] = []
    waiting: set[str] = set()
    for message in messages:
        if held and (not waiting or len(held) == MAX_HELD_MESSAGES):
            yield _MessageGroup(held, is_last=False)
            held, waiting = [], set()
        held.append(message)
        if tool_calls.may_contain_calls(message.content_json):
            content = message.content
            waiting |= tool_calls.get_open_ids(content)
            waiting -= tool_calls.get_finished_ids(content)
    if held:
        yield _MessageGroup(held, is_last=True)


def _merge_results(
    messages: Sequence[ExportedMessage], *, is_last: bool
) -> Iterator[ExportedMessage]:
    """The messages with each result inside its call, and without calls that never ended."""
    if not any(tool_calls.may_contain_calls(message.content_json) for message in messages):
        yield from messages
        return
    contents = tool_calls.fold_tool_calls([message.content for message in messages])
    may_wait = messages[-1] if is_last else None
    for message, content in zip(messages, contents, strict=True):
        if content is not None and message is not may_wait:
            content = tool_calls.drop_open_calls(content)
        if content is not None:
            yield replace(message, content_json=json_text.dumps(content))


def convert_message(message: ExportedMessage, numbers: Iterator[int]) -> Iterator[ChatMessage]:
    """The message, followed by the results of the tools that it calls.

    `numbers` make ids for the calls that are unique in the thread.
    """
    if message.role == "signal":
        return
    content = message.content
    found = part_types.read_parts(content)
    texts = [piece.text for piece in found if isinstance(piece, part_types.TextPart)]
    tool_calls = [
        (f"call_{next(numbers)}", piece)
        for piece in found
        if isinstance(piece, part_types.ToolCall)
    ]
    if message.role == "user":
        yield {"role": "user", "content": _add_images(content, found, "\n\n".join(texts))}
        return
    nothing = None if tool_calls else ""
    chat: ChatMessage = {"role": "assistant", "content": "\n\n".join(texts) or nothing}
    if tool_calls:
        chat["tool_calls"] = [_convert_tool_call(call_id, call) for call_id, call in tool_calls]
    yield chat
    for call_id, call in tool_calls:
        if call.state != "call":
            yield {"role": "tool", "tool_call_id": call_id, "content": _format_result(call)}


def _add_images(content: Any, found: list[part_types.Part], text: str) -> str | list[ChatMessage]:
    pictures = [
        address
        for piece in found
        if isinstance(piece, part_types.FilePart) and (address := _get_image_url(content, piece))
    ]
    if not pictures:
        return text
    shown = [{"type": "image_url", "image_url": {"url": address}} for address in pictures]
    return [{"type": "text", "text": text}, *shown]


def _get_image_url(content: Any, file: part_types.FilePart) -> str:
    """The address of a picture that a model could open, empty for any other file."""
    if file.address:
        kind = content["parts"][file.index].get("type")
        is_picture = kind == "image" or file.mime_type.startswith("image/")
        return file.address if is_picture and file.address.startswith("http") else ""
    held = part_types.read_file(content, file.index)
    if held is None or not file.mime_type.startswith("image/"):
        return ""
    return f"data:{file.mime_type};base64,{base64.b64encode(held[0]).decode()}"


def _convert_tool_call(call_id: str, call: part_types.ToolCall) -> ChatMessage:
    arguments = call.args if isinstance(call.args, str) else orjson.dumps(call.args).decode()
    function = {"name": call.name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def _format_result(call: part_types.ToolCall) -> str:
    outcome = call.error or call.result
    return outcome if isinstance(outcome, str) else orjson.dumps(outcome).decode()
