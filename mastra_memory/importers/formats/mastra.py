"""Mastra's own tables: threads, resources, messages and observations of its memory."""

from collections.abc import Iterator, Mapping
from typing import Any

from mastra_memory import working_memory
from mastra_memory.content import parts
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.formats import mastra_observations
from mastra_memory.importers.formats.mastra_databases import Row, Store
from mastra_memory.importers.formats.mastra_rows import Refused, json_of, moment_of
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedThread,
    ImportedWorkingMemory,
    Item,
    LeftOut,
    Owner,
    Remark,
)

NAME = "mastra"
KEEPS_IDS = True


def check(store: Store) -> None:
    """Raise `InvalidInput` unless the store holds Mastra's threads and messages."""
    for table in ("mastra_threads", "mastra_messages"):
        if not store.columns(table):
            raise InvalidInput(
                f"There is no table {table}: this is no database of Mastra's, or its tables are in "
                "another schema (--schema)"
            )


def size(store: Store) -> int:
    """How many rows of messages there are."""
    (counted,) = store.read("SELECT count(*) AS messages FROM {mastra_messages}")
    return int(counted["messages"])


def read(store: Store, owner: Owner) -> Iterator[Item]:
    """Everything, threads first. Ids stay; `owner` may put a prefix before those of resources."""
    yield from _threads(store, owner)
    yield from _resources(store, owner)
    yield from _messages(store, owner)
    if store.columns("mastra_observational_memory"):
        yield from mastra_observations.read(store, owner)


def _threads(store: Store, owner: Owner) -> Iterator[Item]:
    columns = store.columns("mastra_threads")
    for row in store.read(
        f"""SELECT id, "resourceId", title, metadata,
            {store.moment("createdAt", columns)} AS created_at,
            {store.moment("updatedAt", columns)} AS updated_at
        FROM {{mastra_threads}} ORDER BY id"""
    ):
        where = f"mastra_threads {row['id']}"
        try:
            yield from _thread(store, owner, row, where)
        except Refused as error:
            yield LeftOut("threads", "refused", where, str(error))


def _thread(store: Store, owner: Owner, row: Row, where: str) -> Iterator[Item]:
    metadata, remark = _metadata(store, row["metadata"])
    text, kept = working_memory.taken_out(metadata)
    created_at, updated_at = moment_of(row, "created_at"), moment_of(row, "updated_at")
    title = coercion.text(row["title"])
    resource_id = owner.of(coercion.text(row["resourceId"]))
    clone = coercion.mapping((kept or {}).get("clone"))
    yield from remark
    yield ImportedThread(
        id=coercion.text(row["id"]),
        resource_id=resource_id,
        title=title,
        title_source=_title_source(title, kept or {}),
        metadata=kept,
        clone_source_id=coercion.text(clone.get("sourceThreadId")) or None,
        created_at=created_at,
        updated_at=updated_at,
        where=where,
    )
    if text:
        yield ImportedWorkingMemory(
            resource_id=resource_id,
            thread_id=coercion.text(row["id"]),
            content=text,
            created_at=created_at,
            updated_at=updated_at,
            where=where,
        )


def _metadata(store: Store, value: Any) -> tuple[dict[str, Any] | None, list[Item]]:
    try:
        metadata = json_of(store, value)
        json_text.dumps(metadata)
    except (ValueError, InvalidInput):
        return None, [Remark("threads whose metadata cannot be read came without it")]
    if metadata is None:
        return None, []
    if not isinstance(metadata, dict):
        return {"importRaw": metadata}, [Remark("threads have metadata that is no object")]
    return metadata, []


def _title_source(title: str, metadata: Mapping[str, Any]) -> str:
    """Who gave the title: what the observer named it may rename, unless it is pinned."""
    state = coercion.mapping(coercion.mapping(metadata.get("mastra")).get("om"))
    if not title:
        return ""
    observed = title == state.get("threadTitle") and metadata.get("titlePinned") is not True
    return "observed" if observed else "manual"


def _resources(store: Store, owner: Owner) -> Iterator[Item]:
    columns = store.columns("mastra_resources")
    if not columns:
        return
    for row in store.read(
        f"""SELECT id, "workingMemory", metadata,
            {store.moment("createdAt", columns)} AS created_at,
            {store.moment("updatedAt", columns)} AS updated_at
        FROM {{mastra_resources}} ORDER BY id"""
    ):
        if _metadata(store, row["metadata"])[0]:
            yield Remark("resources have metadata, for which there is no place here")
        if row["workingMemory"]:
            yield _resource(owner, row)


def _resource(owner: Owner, row: Row) -> Item:
    where = f"mastra_resources {row['id']}"
    try:
        return ImportedWorkingMemory(
            resource_id=owner.of(coercion.text(row["id"])),
            content=coercion.text(row["workingMemory"]),
            created_at=moment_of(row, "created_at"),
            updated_at=moment_of(row, "updated_at"),
            where=where,
        )
    except Refused as error:
        return LeftOut("working memories", "refused", where, str(error))


def _messages(store: Store, owner: Owner) -> Iterator[Item]:
    columns = store.columns("mastra_messages")
    created_at = store.moment("m.createdAt", columns)
    for row in store.read(
        f"""SELECT m.id, m.thread_id, m.content, m.role, m.type, {created_at} AS created_at,
            m."resourceId", t.id AS known_thread, t."resourceId" AS thread_resource
        FROM {{mastra_messages}} m LEFT JOIN {{mastra_threads}} t ON t.id = m.thread_id
        ORDER BY m.thread_id, m."createdAt", m.{store.insertion_order}"""
    ):
        yield from _message(owner, row)


def _message(owner: Owner, row: Row) -> Iterator[Item]:
    where = f"mastra_messages {row['id']}"
    role = coercion.text(row["role"])
    if row["known_thread"] is None:
        yield LeftOut("messages", "skipped", where, "an orphan: its thread is missing")
        return
    if role == "system":
        yield LeftOut("messages", "skipped", where, "role system")
        return
    try:
        created_at = moment_of(row, "created_at")
    except Refused as error:
        yield LeftOut("messages", "refused", where, str(error))
        return
    if row["resourceId"] not in (None, "", row["thread_resource"]):
        yield Remark("messages named another resource than their thread and got the thread's")
    content, known = parts.from_storage(_text_of(row["content"]))
    if not known:
        yield Remark("messages have content of no known shape, kept as metadata.importRaw")
    yield ImportedMessage(
        id=coercion.text(row["id"]),
        thread_id=coercion.text(row["thread_id"]),
        resource_id=owner.of(coercion.text(row["thread_resource"])),
        role=role,
        type=coercion.text(row["type"]) or "v2",
        content=content,
        created_at=created_at,
        where=where,
    )


def _text_of(content: Any) -> str:
    """The content as text; a store that was changed by hand may hold bytes or JSON."""
    if isinstance(content, bytes):
        return content.decode(errors="replace")
    return content if isinstance(content, str) else json_text.dumps(content)
