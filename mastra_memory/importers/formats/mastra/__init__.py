"""Mastra's own tables: threads, resources, messages and observations of its memory."""

from collections.abc import Iterator, Mapping
from typing import Any

from mastra_memory import working_memory
from mastra_memory.content import normalization
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.formats.mastra import observations
from mastra_memory.importers.formats.mastra.databases import (
    InvalidRow,
    MastraDatabase,
    MastraRow,
    decode_json,
    get_time,
)
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedThread,
    ImportedWorkingMemory,
    ImportNote,
    OmittedRecord,
    ResourceMapping,
    SourceItem,
)

NAME = "mastra"
KEEPS_IDS = True


def check_tables(store: MastraDatabase) -> None:
    """Raise `InvalidInput` unless the store holds Mastra's threads and messages."""
    for table in ("mastra_threads", "mastra_messages"):
        if not store.list_columns(table):
            raise InvalidInput(
                f"There is no table {table}: this is no database of Mastra's, or its tables are in "
                "another schema (--schema)"
            )


def count_messages(store: MastraDatabase) -> int:
    """How many rows of messages there are."""
    (counted,) = store.iter_rows("SELECT count(*) AS messages FROM {mastra_messages}")
    return int(counted["messages"])


def read(store: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    """Everything, threads first. Ids stay; `owner` may put a prefix before those of resources."""
    yield from _read_threads(store, resources)
    yield from _read_resources(store, resources)
    yield from _read_messages(store, resources)
    if store.list_columns("mastra_observational_memory"):
        yield from observations.read(store, resources)


def _read_threads(store: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    columns = store.list_columns("mastra_threads")
    for row in store.iter_rows(
        f"""SELECT id, "resourceId", title, metadata,
            {store.time_expression("createdAt", columns)} AS created_at,
            {store.time_expression("updatedAt", columns)} AS updated_at
        FROM {{mastra_threads}} ORDER BY id"""
    ):
        location = f"mastra_threads {row['id']}"
        try:
            yield from _convert_thread(store, resources, row, location)
        except InvalidRow as error:
            yield OmittedRecord("threads", "refused", location, str(error))


def _convert_thread(
    store: MastraDatabase, resources: ResourceMapping, row: MastraRow, location: str
) -> Iterator[SourceItem]:
    metadata, remark = _parse_metadata(store, row["metadata"])
    text, kept = working_memory.pop_from_metadata(metadata)
    created_at, updated_at = get_time(row, "created_at"), get_time(row, "updated_at")
    title = coercion.to_text(row["title"])
    resource_id = resources.resolve(coercion.to_text(row["resourceId"]))
    clone = coercion.to_mapping((kept or {}).get("clone"))
    yield from remark
    yield ImportedThread(
        id=coercion.to_text(row["id"]),
        resource_id=resource_id,
        title=title,
        title_source=_get_title_source(title, kept or {}),
        metadata=kept,
        clone_source_id=coercion.to_text(clone.get("sourceThreadId")) or None,
        created_at=created_at,
        updated_at=updated_at,
        location=location,
    )
    if text:
        yield ImportedWorkingMemory(
            resource_id=resource_id,
            thread_id=coercion.to_text(row["id"]),
            content=text,
            created_at=created_at,
            updated_at=updated_at,
            location=location,
        )


def _parse_metadata(
    store: MastraDatabase, value: Any
) -> tuple[dict[str, Any] | None, list[SourceItem]]:
    try:
        metadata = decode_json(store, value)
        json_text.dumps(metadata)
    except (ValueError, InvalidInput):
        return None, [ImportNote("threads whose metadata cannot be read came without it")]
    if metadata is None:
        return None, []
    if not isinstance(metadata, dict):
        return {"importRaw": metadata}, [ImportNote("threads have metadata that is no object")]
    return metadata, []


def _get_title_source(title: str, metadata: Mapping[str, Any]) -> str:
    """Who gave the title: what the observer named it may rename, unless it is pinned."""
    state = coercion.to_mapping(coercion.to_mapping(metadata.get("mastra")).get("om"))
    if not title:
        return ""
    observed = title == state.get("threadTitle") and metadata.get("titlePinned") is not True
    return "observed" if observed else "manual"


def _read_resources(store: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    columns = store.list_columns("mastra_resources")
    if not columns:
        return
    for row in store.iter_rows(
        f"""SELECT id, "workingMemory", metadata,
            {store.time_expression("createdAt", columns)} AS created_at,
            {store.time_expression("updatedAt", columns)} AS updated_at
        FROM {{mastra_resources}} ORDER BY id"""
    ):
        if _parse_metadata(store, row["metadata"])[0]:
            yield ImportNote("resources have metadata, for which there is no place here")
        if row["workingMemory"]:
            yield _convert_resource(resources, row)


def _convert_resource(resources: ResourceMapping, row: MastraRow) -> SourceItem:
    location = f"mastra_resources {row['id']}"
    try:
        return ImportedWorkingMemory(
            resource_id=resources.resolve(coercion.to_text(row["id"])),
            content=coercion.to_text(row["workingMemory"]),
            created_at=get_time(row, "created_at"),
            updated_at=get_time(row, "updated_at"),
            location=location,
        )
    except InvalidRow as error:
        return OmittedRecord("working memories", "refused", location, str(error))


def _read_messages(store: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    columns = store.list_columns("mastra_messages")
    created_at = store.time_expression("m.createdAt", columns)
    for row in store.iter_rows(
        f"""SELECT m.id, m.thread_id, m.content, m.role, m.type, {created_at} AS created_at,
            m."resourceId", t.id AS known_thread, t."resourceId" AS thread_resource
        FROM {{mastra_messages}} m LEFT JOIN {{mastra_threads}} t ON t.id = m.thread_id
        ORDER BY m.thread_id, m."createdAt", m.{store.insertion_order}"""
    ):
        yield from _convert_message(resources, row)


def _convert_message(resources: ResourceMapping, row: MastraRow) -> Iterator[SourceItem]:
    location = f"mastra_messages {row['id']}"
    role = coercion.to_text(row["role"])
    if row["known_thread"] is None:
        yield OmittedRecord("messages", "skipped", location, "an orphan: its thread is missing")
        return
    if role == "system":
        yield OmittedRecord("messages", "skipped", location, "role system")
        return
    try:
        created_at = get_time(row, "created_at")
    except InvalidRow as error:
        yield OmittedRecord("messages", "refused", location, str(error))
        return
    if row["resourceId"] not in (None, "", row["thread_resource"]):
        yield ImportNote("messages named another resource than their thread and got the thread's")
    content, known = normalization.content_from_storage(_decode_content(row["content"]))
    if not known:
        yield ImportNote("messages have content of no known shape, kept as metadata.importRaw")
    yield ImportedMessage(
        id=coercion.to_text(row["id"]),
        thread_id=coercion.to_text(row["thread_id"]),
        resource_id=resources.resolve(coercion.to_text(row["thread_resource"])),
        role=role,
        type=coercion.to_text(row["type"]) or "v2",
        content=content,
        created_at=created_at,
        location=location,
    )


def _decode_content(content: Any) -> str:
    """The content as text; a store that was changed by hand may hold bytes or JSON."""
    if isinstance(content, bytes):
        return content.decode(errors="replace")
    return content if isinstance(content, str) else json_text.dumps(content)
