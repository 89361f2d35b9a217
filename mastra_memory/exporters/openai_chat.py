"""Export OpenAI chat messages, one line of JSON for each thread, as fine-tuning requires."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import orjson

from mastra_memory.content import data_uris, part_types, tool_calls
from mastra_memory.db import json_text
from mastra_memory.exporters.output import ExportCounts, WriteBytes
from mastra_memory.exporters.selection import (
    ExportedMessage,
    ExportSelection,
    iterate_conversations,
)

NAME, SUFFIX = "openai", ".jsonl"
MAX_HELD_MESSAGES = 100
"""Messages that are held in memory while a tool call has no result."""
MAX_HELD_CALLS = 1_000
"""Calls that are held in memory if their results are farther away."""

ChatMessage = dict[str, Any]


def export(
    selection: ExportSelection, write: WriteBytes, after_thread: Callable[[], None]
) -> ExportCounts:
    """Write a line for each thread with messages, without reasoning and messages of role `signal`.

    Each tool call is followed by its result. A call without a result is left out, unless it is in
    the last message. The result of a call that is not exported gets a call without arguments.
    """
    counts = ExportCounts()
    for _, messages in iterate_conversations(selection):
        numbers = count(1)
        separator = b'{"messages":['
        earlier_calls = _EarlierCalls()
        for group in _group_messages(messages):
            for message in earlier_calls.restore(_merge_results(group)):
                for chat in convert_message(message, numbers):
                    write(separator + orjson.dumps(chat))
                    separator = b","
            earlier_calls.remember(group.messages)
            counts.messages += len(group.messages)
        if separator == b",":
            write(b"]}\n")
            counts.threads += 1
        after_thread()
    return counts


class _MessageGroup(NamedTuple):
    """Consecutive messages that contain tool calls together with their results."""

    messages: list[ExportedMessage]
    is_last: bool


def _group_messages(messages: Iterable[ExportedMessage]) -> Iterator[_MessageGroup]:
    """Split the messages of a thread into groups, without separating a call from its result."""
    held: list[ExportedMessage] = []
    waiting: set[str] = set()
    for message in messages:
        if held and (not waiting or len(held) == MAX_HELD_MESSAGES):
            yield _MessageGroup(held, is_last=False)
            held, waiting = [], set()
        held.append(message)
        if tool_calls.may_contain_calls(message.content_json):
            content = message.content
            waiting |= tool_calls.get_pending_call_ids(content)
            waiting -= tool_calls.get_finished_call_ids(content)
    if held:
        yield _MessageGroup(held, is_last=True)


def _merge_results(group: _MessageGroup) -> list[ExportedMessage]:
    """Move each result into its call, and drop calls without a result.

    In the last group, calls in the last message may be without a result.
    """
    waiting: set[str] = set()
    last = group.messages[-1]
    if group.is_last and tool_calls.may_contain_calls(last.content_json):
        waiting = tool_calls.get_pending_call_ids(last.content)
    # `answered` keeps these calls, although they have no results.
    return tool_calls.merge_stored_tool_results(group.messages, drop_pending=True, answered=waiting)


class _EarlierCalls:
    """The calls of earlier groups that had no result there."""

    def __init__(self) -> None:
        self._calls: dict[str, Mapping[str, Any]] = {}

    def remember(self, messages: Sequence[ExportedMessage]) -> None:
        """Keep the calls without a result, at most `MAX_HELD_CALLS` of them."""
        for message in messages:
            if not tool_calls.may_contain_calls(message.content_json):
                continue
            for _, call in tool_calls.iter_tool_calls(message.content):
                call_id = str(call.get("toolCallId"))
                self._calls.pop(call_id, None)
                if tool_calls.get_state_rank(call) < tool_calls.FINISHED_RANK:
                    self._calls[call_id] = call
        for call_id in list(self._calls)[:-MAX_HELD_CALLS]:
            del self._calls[call_id]

    def restore(self, messages: Sequence[ExportedMessage]) -> Iterator[ExportedMessage]:
        """Yield the messages, with names and arguments in results that are far from their calls."""
        for message in messages:
            if self._calls and tool_calls.may_contain_calls(message.content_json):
                content = message.content
                parts = list(content["parts"])
                for index, result in tool_calls.iter_tool_calls(content):
                    if call := self._calls.get(str(result.get("toolCallId"))):
                        merged = tool_calls.merge_call_states(call, result)
                        parts[index] = {**parts[index], "toolInvocation": merged}
                restored = json_text.dumps({**content, "parts": parts})
                message = message._replace(content_json=restored)
            yield message


def convert_message(message: ExportedMessage, numbers: Iterator[int]) -> Iterator[ChatMessage]:
    """Yield the chat message, and a message for the result of each tool call in it.

    Calls get the ids `call_1`, `call_2`, ... from `numbers`, since stored ids may not be unique in
    a thread.
    """
    if message.role == "signal":
        return
    content = message.content
    parts = part_types.read_parts(content)
    text = "\n\n".join(part.text for part in parts if isinstance(part, part_types.TextPart))
    calls = [
        (f"call_{next(numbers)}", part) for part in parts if isinstance(part, part_types.ToolCall)
    ]
    if message.role == "user":
        text = text or part_types.format_file_names(parts)
        yield {"role": "user", "content": _add_images(content, parts, text)}
        return
    # OpenAI expects null, not an empty text, in a message that only calls tools.
    empty = None if calls else ""
    chat: ChatMessage = {"role": "assistant", "content": text or empty}
    if calls:
        chat["tool_calls"] = [_convert_tool_call(call_id, call) for call_id, call in calls]
    yield chat
    for call_id, call in calls:
        if call.state != "call":
            yield {"role": "tool", "tool_call_id": call_id, "content": _format_result(call)}


def _add_images(content: Any, parts: list[part_types.Part], text: str) -> str | list[ChatMessage]:
    urls = [
        url
        for part in parts
        if isinstance(part, part_types.FilePart) and (url := _get_image_url(content, part))
    ]
    if not urls:
        return text
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"type": "text", "text": text}, *images]


def _get_image_url(content: Any, file: part_types.FilePart) -> str:
    """Return a URL under which a model can open the image, or "" for other files."""
    if file.address:
        kind = content["parts"][file.index].get("type")
        is_image = kind == "image" or file.mime_type.startswith("image/")
        return file.address if is_image and file.address.startswith("http") else ""
    embedded = part_types.read_file(content, file.index)
    if embedded is None or not file.mime_type.startswith("image/"):
        return ""
    return data_uris.build_data_uri(embedded[0], file.mime_type)


def _convert_tool_call(call_id: str, call: part_types.ToolCall) -> ChatMessage:
    arguments = call.args if isinstance(call.args, str) else orjson.dumps(call.args).decode()
    function = {"name": call.name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def _format_result(call: part_types.ToolCall) -> str:
    result = call.error or call.result
    return result if isinstance(result, str) else orjson.dumps(result).decode()
