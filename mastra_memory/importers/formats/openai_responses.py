"""Read JSON of OpenAI's Responses, Conversations and Assistants APIs.

Files contain requests with `input`, answers with `output`, pages of items or messages
(`{"object": "list", "data": [...]}`), or one object in each line. A conversation may be in several
records: those with the same conversation or thread, and answers that name the previous one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import chat_messages, coercion, response_items
from mastra_memory.importers.conversation import (
    INSTRUCTION_ROLES,
    ConversationBuilder,
    PartDict,
    build_upload_part,
)
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.grouping import RecordGroups, sort_by_time
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

NAME = "openai-responses"
KEEPS_IDS = False

Json = Mapping[str, Any]

_THREAD_OBJECTS = frozenset({"thread.message", "thread.run.step"})
_ITEM_SUFFIXES = ("message", "reasoning", "_call", "_call_output")


def detect(record: Json) -> bool:
    """Return whether a record is an object of the Responses or the Assistants API."""
    return any(_is_known(part) for part in _iter_parts(record))


def _is_known(part: Json) -> bool:
    kind = _get_object(part)
    if kind in ("response", "thread", *_THREAD_OBJECTS) or _is_request(part):
        return True
    data = coercion.to_mappings(part.get("data"))
    return kind == "list" and any(
        _is_item(item) or _get_object(item) in _THREAD_OBJECTS for item in data[:1]
    )


def _get_object(value: Json) -> str:
    return coercion.to_text(value.get("object"))


def _is_request(part: Json) -> bool:
    """Return whether the record has an input for a model that answers, not for one that embeds."""
    items = part.get("input")
    if isinstance(items, list):
        first = coercion.to_mappings(items)[:1]
        return bool(first) and (_is_item(first[0]) or "role" in first[0])
    model = coercion.to_text(part.get("model"))
    has_model = bool(model) and "embedding" not in model
    return isinstance(items, str) and (has_model or isinstance(part.get("output"), list))


def _is_item(item: Json) -> bool:
    return coercion.to_text(item.get("type")).endswith(_ITEM_SUFFIXES)


def _iter_parts(record: Json) -> Iterator[Json]:
    """Yield a record, and the request and the response in a record of a batch file or a log."""
    yield record
    for key in ("request", "body", "response"):
        part = coercion.to_mapping(record.get(key))
        yield part
        yield coercion.to_mapping(part.get("body"))


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each conversation."""
    with closing(RecordGroups()) as groups:
        collector = _Collector(groups)
        for file in files:
            yield from read_items(file, partial(collector.add_record, file))
        for key, entries in groups.iter_groups():
            yield from _build_thread(key, entries, resources)


class _Collector:
    """Find out which conversation the parts of records belong to."""

    def __init__(self, groups: RecordGroups) -> None:
        self._groups = groups
        self._keys: dict[str, str] = {}
        """The conversation of each response, by its id."""

    def add_record(self, file: SourceFile, record: Json, location: str) -> None:
        """Add the messages and items of a record to their conversations.

        Raises:
            InvalidInput: The record contains none.
        """
        parts = [part for part in _iter_parts(record) if _is_known(part) or "output" in part]
        if not parts:
            raise InvalidInput("no input, output or messages")
        key = self._find_key(record, parts)
        for index, part in enumerate(parts):
            for time, kind, value in _iter_entries(part, index):
                thread_id = coercion.to_text(value.get("thread_id"))
                entry = {
                    "time": time,
                    "kind": kind,
                    "value": value,
                    "user": _get_user(record, parts),
                    "start": file.modified.timestamp(),
                    "location": location,
                }
                if not self._groups.add(thread_id or key, entry):
                    raise InvalidInput("the conversation is too long")

    def _find_key(self, record: Json, parts: Sequence[Json]) -> str:
        names = [coercion.to_text(record.get("custom_id"))]
        for part in parts:
            conversation = part.get("conversation")
            names.append(
                coercion.to_text(coercion.to_mapping(conversation).get("id", conversation))
            )
            if part.get("object") == "thread":
                names.append(coercion.to_text(part.get("id")))
        previous = (coercion.to_text(part.get("previous_response_id")) for part in parts)
        previous_id = next(filter(None, previous), "")
        response_ids = [
            coercion.to_text(part.get("id")) for part in parts if part.get("object") == "response"
        ]
        own_id = next(filter(None, response_ids), "")
        key = next(filter(None, names), "") or self._keys.get(previous_id, previous_id)
        key = key or self._keys.get(own_id, own_id) or hash_content(record)
        for response_id in (previous_id, own_id):
            if response_id:
                self._keys.setdefault(response_id, key)
        return key


def _get_user(record: Json, parts: Sequence[Json]) -> str:
    for part in (record, *parts):
        for value in (part, coercion.to_mapping(part.get("metadata"))):
            for name in ("user", "safety_identifier", "user_id"):
                if user := coercion.to_text(value.get(name)):
                    return user
    return ""


def _iter_entries(part: Json, index: int) -> Iterator[tuple[float | None, str, Json]]:
    """Yield the time in seconds, the kind and the value of each entry of a conversation."""
    time = _get_seconds(part, "created_at")
    if _get_object(part) in _THREAD_OBJECTS:
        yield time, "thread", part
        return
    messages = part.get("messages") if part.get("object") == "thread" else None
    data = messages if messages is not None else part.get("data")
    data = coercion.to_mapping(data).get("data", data)
    for item in coercion.to_mappings(data):
        if _get_object(item) in _THREAD_OBJECTS:
            yield _get_seconds(item, "created_at"), "thread", item
        else:
            yield _get_seconds(item, "created_at"), "item", item
    items = part.get("input")
    if isinstance(items, str):
        yield time, "item", {"role": "user", "content": items}
    for item in [*coercion.to_mappings(items), *coercion.to_mappings(part.get("output"))]:
        yield time, "item", item


def _get_seconds(value: Json, key: str) -> float | None:
    time = coercion.to_datetime(value.get(key))
    return None if time is None else time.timestamp()


def _build_thread(
    key: str, entries: Sequence[Any], resources: ResourceMapping
) -> Iterator[SourceItem]:
    ordered = sort_by_time((entry["time"], entry) for entry in _restore_order(entries))
    users = (entry["user"] for entry in ordered)
    resource_id = resources.resolve(next(filter(None, users), key))
    start = coercion.to_datetime(ordered[0]["time"]) or coercion.to_datetime(ordered[0]["start"])
    assert start is not None
    thread_id = derive_id(NAME, resource_id, key)
    builder = ConversationBuilder(thread_id, resource_id, start, ordered[0]["location"])
    adder = _EntryAdder(builder)
    for index, entry in enumerate(ordered):
        adder.add(entry, str(index))
    adder.flush()
    return builder.build_items(metadata=build_origin_metadata(NAME, key))


def _restore_order(entries: Sequence[Any]) -> Sequence[Any]:
    """Return the entries oldest first. The APIs list messages newest first by default."""
    times = [entry["time"] for entry in entries if entry["time"] is not None]
    is_descending = len(times) > 1 and times[0] > times[-1] and times == sorted(times)[::-1]
    return entries[::-1] if is_descending else entries


class _EntryAdder:
    """Add entries to a conversation. Consecutive items of the assistant become one message."""

    def __init__(self, builder: ConversationBuilder) -> None:
        self._builder = builder
        self._items: list[Json] = []
        self._first: tuple[str, Any] = ("", {})
        """The key and the entry of the first item that waits to be added."""

    def add(self, entry: Any, key: str) -> None:
        """Add an entry."""
        value, location = entry["value"], entry["location"]
        if entry["kind"] == "thread":
            self.flush()
            self._add_thread_object(value, key, entry)
            return
        role = chat_messages.get_role(response_items.get_item_role(value))
        if role in INSTRUCTION_ROLES:
            self._omit("skipped", location, f"role {role}")
        elif response_items.is_result(value):
            self._add_result(value, key, entry)
        elif role == "assistant":
            if self._items:
                self._omit("joined", location, "part of an answer")
            else:
                self._first = (key, entry)
            self._items.append(value)
        else:
            self.flush()
            message = {**value, "role": response_items.get_item_role(value)}
            chat_messages.add_message(
                self._builder, key, message, location, time=coercion.to_datetime(entry["time"])
            )

    def _add_result(self, value: Json, key: str, entry: Any) -> None:
        """Store a result in its call, which may wait or be in an earlier message."""
        call_id, location = coercion.to_text(value.get("call_id")), entry["location"]
        if any(call_id == item.get("call_id") for item in self._items):
            self._items.append(value)
            self._omit("joined", location, "result of a tool call")
            return
        self.flush()
        result = response_items.read_result(value)
        if call_id and self._builder.add_tool_result(result, call_id=call_id):
            self._omit("joined", location, "result of a tool call")
        else:
            part = normalization.build_result_part(call_id or key, "tool", result)
            time = coercion.to_datetime(entry["time"])
            self._builder.add_message(key, "tool", [part], time=time, location=location)

    def flush(self) -> None:
        """Add the items that wait as one message."""
        items, self._items = self._items, []
        if not items:
            return
        key, entry = self._first
        parts = response_items.convert_items(items, key)
        self._add_parts(key, "assistant", parts, entry)

    def _add_parts(self, key: str, role: str, parts: Sequence[PartDict], entry: Any) -> None:
        if not parts:
            self._omit("skipped", entry["location"], "no content")
            return
        source_id = coercion.to_text(entry["value"].get("id"))
        self._builder.add_message(
            source_id if source_id and not self._builder.get_message_time(source_id) else key,
            role,
            parts,
            time=coercion.to_datetime(entry["time"]),
            metadata=coercion.drop_empty(importId=source_id),
            location=entry["location"],
        )

    def _add_thread_object(self, value: Json, key: str, entry: Any) -> None:
        """Add a message or a step of a run of the Assistants API."""
        location = entry["location"]
        if value.get("object") == "thread.run.step":
            details = coercion.to_mapping(value.get("step_details"))
            calls = coercion.to_mappings(details.get("tool_calls"))
            if not calls:
                self._omit("skipped", location, "step that creates a message")
                return
            parts = [_convert_step_call(call, f"{key}:{n}") for n, call in enumerate(calls)]
            self._add_parts(key, "assistant", parts, entry)
            return
        role = chat_messages.get_role(coercion.to_text(value.get("role")))
        if role not in ("user", "assistant"):
            name = json_text.dumps(value.get("role"))[:40]
            self._omit("refused", location, f"unknown role {name}")
            return
        self._add_parts(key, role, _convert_thread_message(value), entry)

    def _omit(self, outcome: Any, location: str, reason: str) -> None:
        self._builder.omit(OmittedRecord("messages", outcome, location, reason))


def _convert_thread_message(message: Json) -> list[PartDict]:
    parts: list[PartDict] = []
    content = message.get("content")
    if isinstance(content, str):
        parts.append({"type": "text", "text": content})
    for block in coercion.to_mappings(content):
        value = block.get(str(block.get("type")))
        if block.get("type") == "text":
            text = coercion.to_mapping(value).get("value", value)
            if coercion.to_text(text).strip():
                parts.append({"type": "text", "text": text})
        elif block.get("type") == "image_file":
            parts.append({"type": "image", "image": _get_file_id(value)})
        else:
            parts.append(chat_messages.convert_part(block))
    for upload in coercion.to_mappings(message.get("attachments")):
        if file_id := _get_file_id(upload):
            name = coercion.to_text(upload.get("filename")) or file_id
            parts.append(build_upload_part(name, id=file_id))
    return parts


def _get_file_id(value: Any) -> str:
    return coercion.to_text(coercion.to_mapping(value).get("file_id"))


def _convert_step_call(call: Json, call_id: str) -> PartDict:
    kind = coercion.to_text(call.get("type")) or "tool"
    inner = coercion.to_mapping(call.get(kind))
    arguments = inner.get("arguments", inner.get("input"))
    part = normalization.build_call_part(
        coercion.to_text(call.get("id")) or call_id,
        coercion.to_text(inner.get("name")) or kind,
        chat_messages.parse_arguments(arguments),
    )
    output = inner.get("output", inner.get("outputs", inner.get("results")))
    if output is not None:
        normalization.set_result(part["toolInvocation"], chat_messages.convert_result(output))
    return part
