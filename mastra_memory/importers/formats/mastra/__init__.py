"""Read Mastra's own database: threads, working memory, messages and observations."""

from collections.abc import Iterator, Mapping
from typing import Any

from mastra_memory import working_memory
from mastra_memory.content import normalization
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.formats.mastra import observations, queries
from mastra_memory.importers.formats.mastra.databases import (
    InvalidRowError,
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


def check_tables(database: MastraDatabase) -> None:
    """Raise `InvalidInput` if the database has no tables of Mastra's threads and messages."""
    for table in ("mastra_threads", "mastra_messages"):
        if not database.list_columns(table):
            raise InvalidInput(
                f"There is no table {table}: this is not a database of Mastra, or its tables are "
                "in another schema (see --schema)"
            )


def count_messages(database: MastraDatabase) -> int:
    """Return the number of messages, orphans included."""
    (row,) = database.iter_rows(queries.COUNT_MESSAGES)
    return int(row["messages"])


def read(database: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield all objects, threads first. Ids are kept, but `resources` may change resource ids."""
    yield from _read_threads(database, resources)
    yield from _read_resources(database, resources)
    yield from _read_messages(database, resources)
    if database.list_columns("mastra_observational_memory"):
        yield from observations.read(database, resources)


def _read_threads(database: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    for row in database.iter_rows(queries.select_threads(database)):
        location = f"mastra_threads {row['id']}"
        try:
            yield from _convert_thread(database, resources, row, location)
        except InvalidRowError as error:
            yield OmittedRecord("threads", "refused", location, str(error))


def _convert_thread(
    database: MastraDatabase, resources: ResourceMapping, row: MastraRow, location: str
) -> Iterator[SourceItem]:
    metadata, notes = _parse_metadata(database, row["metadata"])
    text, thread_metadata = working_memory.pop_from_metadata(metadata)
    created_at, updated_at = get_time(row, "created_at"), get_time(row, "updated_at")
    title = coercion.to_text(row["title"])
    resource_id = resources.resolve(coercion.to_text(row["resourceId"]))
    clone = coercion.to_mapping((thread_metadata or {}).get("clone"))
    yield from notes
    yield ImportedThread(
        id=coercion.to_text(row["id"]),
        resource_id=resource_id,
        title=title,
        title_source=_get_title_source(title, thread_metadata or {}),
        metadata=thread_metadata,
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
    database: MastraDatabase, value: Any
) -> tuple[dict[str, Any] | None, list[SourceItem]]:
    try:
        metadata = decode_json(database, value)
        json_text.dumps(metadata)
    except (ValueError, InvalidInput):
        return None, [ImportNote("threads with unreadable metadata were stored without it")]
    if metadata is None:
        return None, []
    if not isinstance(metadata, dict):
        return {"importRaw": metadata}, [
            ImportNote(
                "threads have metadata that is not an object; it was stored as metadata.importRaw"
            )
        ]
    return metadata, []


def _get_title_source(title: str, metadata: Mapping[str, Any]) -> str:
    """Return who set the title: the observer may replace its own titles unless they are pinned."""
    state = coercion.to_mapping(coercion.to_mapping(metadata.get("mastra")).get("om"))
    if not title:
        return ""
    is_observed = title == state.get("threadTitle") and metadata.get("titlePinned") is not True
    return "observed" if is_observed else "manual"


def _read_resources(database: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    if not database.list_columns("mastra_resources"):
        return
    for row in database.iter_rows(queries.select_resources(database)):
        if _parse_metadata(database, row["metadata"])[0]:
            yield ImportNote("resources have metadata, which cannot be stored here")
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
    except InvalidRowError as error:
        return OmittedRecord("working memories", "refused", location, str(error))


def _read_messages(database: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    for row in database.iter_rows(queries.select_messages(database)):
        yield from _convert_message(resources, row)


def _convert_message(resources: ResourceMapping, row: MastraRow) -> Iterator[SourceItem]:
    location = f"mastra_messages {row['id']}"
    role = coercion.to_text(row["role"])
    if row["known_thread"] is None:
        yield OmittedRecord("messages", "skipped", location, "its thread is missing")
        return
    if role == "system":
        yield OmittedRecord("messages", "skipped", location, "role system")
        return
    try:
        created_at = get_time(row, "created_at")
    except InvalidRowError as error:
        yield OmittedRecord("messages", "refused", location, str(error))
        return
    if row["resourceId"] not in (None, "", row["thread_resource"]):
        yield ImportNote(
            "messages with another resource than their thread got the resource of the thread"
        )
    content, is_known = normalization.content_from_storage(_decode_content(row["content"]))
    if not is_known:
        yield ImportNote(
            "messages have content in an unknown form; it was stored as metadata.importRaw"
        )
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
    """Return the content as text. In a database that was edited by hand it may be bytes or JSON."""
    if isinstance(content, bytes):
        return content.decode(errors="replace")
    return content if isinstance(content, str) else json_text.dumps(content)
