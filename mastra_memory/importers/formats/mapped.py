"""Read files in a custom format that a mapping file describes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import chat_messages, coercion, tables
from mastra_memory.importers.conversation import (
    INSTRUCTION_ROLES,
    ConversationBuilder,
    PartDict,
    build_upload_part,
)
from mastra_memory.importers.files import TABLE_SUFFIXES, RecordSplitter, SourceFile
from mastra_memory.importers.grouping import MAX_GROUP_BYTES, RecordGroups, sort_by_time
from mastra_memory.importers.json_stream import RawRecord, split_records
from mastra_memory.importers.mapping import SKIP, FieldMapping
from mastra_memory.importers.parsing import get_excerpt, parse_record
from mastra_memory.importers.records import (
    OmittedRecord,
    RecordKind,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

_MISSING = ("", None)


class MappedFormat:
    """A file format that a mapping describes. It has the members of `formats.FileFormat`."""

    def __init__(self, mapping: FieldMapping) -> None:
        """Create the format of a mapping."""
        self.NAME = mapping.name
        # Here this only says whether the files name owners; `mapping.keeps_ids` decides about ids.
        self.KEEPS_IDS = mapping.has_owners
        self._mapping = mapping

    def detect(self, record: Mapping[str, Any]) -> bool:
        """Return False: this format is used only if a mapping is given."""
        return False

    def read(self, files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
        """Yield the threads with their messages, which may be anywhere in the files."""
        with closing(RecordGroups()) as groups:
            for file in files:
                yield from self._read_file(file, resources, groups)
            for key, entries in groups.iter_groups():
                yield from self._build_thread(json_text.loads(key), entries)

    def _read_file(
        self, file: SourceFile, resources: ResourceMapping, groups: RecordGroups
    ) -> Iterator[SourceItem]:
        """Add the messages of a file to the groups, and yield those that are omitted."""
        for raw in file.read_records(split=self._get_splitter(file)):
            location = f"{file.name}:{raw.number}" if raw.number else file.name
            row = f"line {raw.number}" if raw.number else file.name
            try:
                record = parse_record(raw)
                messages = self._list_messages(record)
            except InvalidInput as error:
                kind: RecordKind = "threads" if self._mapping.messages else "messages"
                reason, excerpt = f"{row}: {error}", get_excerpt(raw.data)
                yield OmittedRecord(kind, "refused", location, reason, excerpt)
                continue
            for index, message in enumerate(messages):
                where = f"{location} message {index}" if self._mapping.messages else location
                place = f"{row}, message {index}" if self._mapping.messages else row
                reader = _MessageReader(self._mapping, file, raw, record, message)
                yield from self._add_message(reader, resources, groups, where, place)

    def _get_splitter(self, file: SourceFile) -> RecordSplitter:
        if not file.name.lower().endswith(TABLE_SUFFIXES):
            return split_records
        delimiter = self._mapping.delimiter
        if ".tsv" in file.basename.lower()[-4:]:
            delimiter = delimiter or "\t"
        return partial(tables.split_rows, encoding=self._mapping.encoding, delimiter=delimiter)

    def _list_messages(self, record: Mapping[str, Any]) -> Sequence[Any]:
        if not self._mapping.messages:
            return [record]
        messages = get_value(record, self._mapping.messages)
        if not isinstance(messages, list):
            raise InvalidInput(f"messages: no list at {self._mapping.messages}")
        return messages

    def _add_message(
        self,
        reader: "_MessageReader",
        resources: ResourceMapping,
        groups: RecordGroups,
        location: str,
        place: str,
    ) -> Iterator[SourceItem]:
        try:
            key, entry = reader.read(resources)
        except InvalidInput as error:
            reason, excerpt = f"{place}, {error}", get_excerpt(reader.raw.data)
            yield OmittedRecord("messages", "refused", location, reason, excerpt)
            return
        if isinstance(entry, str):
            yield OmittedRecord("messages", "skipped", location, entry)
        elif not groups.add(json_text.dumps(key), {**entry, "location": location, "place": place}):
            reason = f"the thread is longer than {MAX_GROUP_BYTES >> 20} MB"
            yield OmittedRecord("messages", "refused", location, reason)

    def _build_thread(self, key: Sequence[str], entries: Sequence[Any]) -> Iterator[SourceItem]:
        resource_id, source_id = key
        ordered = sort_by_time((entry["time"], entry) for entry in entries)
        first = ordered[0]
        keeps_ids = self._mapping.keeps_ids
        thread_id = source_id if keeps_ids else derive_id(self.NAME, resource_id, source_id)
        start = times.parse_time(first["time"] or first["start"])
        builder = ConversationBuilder(
            thread_id, resource_id, start, first["location"], keeps_keys=keeps_ids
        )
        repeated: dict[str, int] = {}
        for entry in ordered:
            message_key = entry["id"]
            if not message_key:
                content_hash = hash_content([entry["role"], entry["parts"], entry["time"]])
                repeated[content_hash] = repeated.get(content_hash, -1) + 1
                message_key = derive_id(thread_id, content_hash, str(repeated[content_hash]))
            elif builder.get_message_time(message_key):
                reason = f"{entry['place']}, id: {message_key[:40]} occurs twice in its thread"
                builder.omit(OmittedRecord("messages", "refused", entry["location"], reason))
                continue
            builder.add_message(
                message_key,
                entry["role"],
                entry["parts"],
                time=times.parse_time(entry["time"]) if entry["time"] else None,
                metadata=entry["metadata"],
                location=entry["location"],
            )
        titles = (entry["title"] for entry in ordered)
        return builder.build_items(
            title=next(filter(None, titles), ""),
            metadata=build_origin_metadata(self.NAME, source_id),
        )


@dataclass(frozen=True, slots=True)
class _MessageReader:
    """Read the fields of one message."""

    mapping: FieldMapping
    file: SourceFile
    raw: RawRecord
    record: Mapping[str, Any]
    message: Any
    """The record itself, or an element of its list of messages."""

    def read(self, resources: ResourceMapping) -> tuple[list[str], dict[str, Any] | str]:
        """Return the resource and the id of the thread, and the message as a dict.

        If the message is skipped, the reason takes its place.

        Raises:
            InvalidInput: A field is invalid; the error begins with its name.
        """
        if not isinstance(self.message, Mapping):
            raise InvalidInput("the message is not an object")
        thread = self._read_id("thread") or self.mapping.defaults.get("thread", "")
        if not thread and self.mapping.messages:
            thread = hash_content(self.record)
        if not thread:
            raise InvalidInput(f"thread: nothing at {self._get_path('thread')}")
        key = [self._resolve_owner(resources, thread), thread]
        role = self._read_role()
        if role == SKIP or role in INSTRUCTION_ROLES:
            return key, "the mapping skips its role" if role == SKIP else f"role {role}"
        parts = [*self._read_texts(), *self._read_files()]
        if role == "tool" and parts:
            texts = [part["text"] for part in parts if part["type"] == "text"]
            parts = [normalization.build_result_part("", "tool", "\n".join(texts))]
        if not parts:
            return key, "no content"
        message_id = self._read_id("id")
        return key, {
            "id": message_id,
            "role": role,
            "parts": parts,
            "time": self._read_time(),
            "start": times.format_time(self.file.modified),
            "title": self._read_id("title") or self.mapping.defaults.get("title", ""),
            "metadata": {**coercion.drop_empty(importId=message_id), **self._read_metadata()},
        }

    def _get_path(self, name: str) -> str:
        return ", ".join(self.mapping.fields.get(name, ["no path"]))

    def _get_values(self, name: str) -> Iterator[Any]:
        """Yield the values of a field. Those of a thread may be in the record around the list."""
        for path in self.mapping.fields.get(name, ()):
            match path:
                case "@file":
                    yield self.file.name
                case "@folder":
                    yield self.file.name.rpartition("/")[0]
                case _:
                    value = get_value(self.message, path)
                    if name in ("thread", "owner", "title") and self.message is not self.record:
                        outer = get_value(self.record, path)
                        value = value if outer in _MISSING else outer
                    yield value

    def _read_id(self, name: str) -> str:
        value = next(self._get_values(name), None)
        if isinstance(value, bool | Mapping | list):
            raise InvalidInput(f"{name}: not a text or a number at {self._get_path(name)}")
        return "" if value is None else str(value).strip()

    def _resolve_owner(self, resources: ResourceMapping, thread: str) -> str:
        owner = self._read_id("owner") or self.mapping.defaults.get("owner", "")
        if not owner and self.mapping.has_owners and resources.resource is None:
            raise InvalidInput(f"owner: nothing at {self._get_path('owner')}")
        return resources.resolve(owner or thread)

    def _read_role(self) -> str:
        value = next(self._get_values("role"), None)
        text = str(value) if isinstance(value, str | int | float) else ""
        if not text.strip():
            text = self.mapping.defaults.get("role", "")
        role = self.mapping.convert_role(text)
        if not role:
            reason = f"unknown value {text[:40]}; add it to roles" if text else "nothing"
            raise InvalidInput(f"role: {reason} at {self._get_path('role')}")
        return role

    def _read_texts(self) -> Iterator[PartDict]:
        for value in self._get_values("text"):
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = str(value)
            if isinstance(value, list):
                yield from chat_messages.convert_content(value)
            elif isinstance(value, Mapping | bool):
                raise InvalidInput(f"text: not a text at {self._get_path('text')}")
            elif value and value.strip():
                yield {"type": "text", "text": value}

    def _read_files(self) -> Iterator[PartDict]:
        for value in self._get_values("files"):
            for item in value if isinstance(value, list) else [value]:
                file = {"name": item} if isinstance(item, str) else coercion.to_mapping(item)
                names = (coercion.to_text(file.get(key)) for key in _FILE_NAME_KEYS)
                if name := next(filter(None, names), ""):
                    yield build_upload_part(name, url=_get_url(file))

    def _read_time(self) -> str | None:
        value = next(self._get_values("time"), None)
        if value in _MISSING:
            return None
        try:
            return times.format_time(self.mapping.parse_time(value))
        except (ValueError, OverflowError):
            path = self._get_path("time")
            raise InvalidInput(f"time: {str(value)[:40]} at {path} is not a time") from None

    def _read_metadata(self) -> dict[str, Any]:
        values = {path: get_value(self.message, path) for path in self.mapping.metadata}
        return coercion.drop_empty(**values)


_FILE_NAME_KEYS = ("name", "filename", "file_name", "fileName", "title")


def _get_url(file: Mapping[str, Any]) -> str:
    urls = (coercion.to_text(file.get(key)) for key in ("url", "content_url", "url_private"))
    return next(filter(None, urls), "")


def get_value(value: Any, path: str) -> Any:
    """Return the value at a path, or None.

    A path is a key, or keys and indexes of lists joined by dots, such as `author.name` or
    `parts.0.text`. If the whole path, dots included, is itself a key, that key is used.
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for key in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key[:9]) < len(value):
            value = value[int(key[:9])]
        else:
            return None
    return value
