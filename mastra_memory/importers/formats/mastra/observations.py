"""Mastra's observational memory: generations of a lineage, and chunks that wait for activation."""

from collections.abc import Iterator, Mapping
from typing import Any

from mastra_memory.importers import coercion
from mastra_memory.importers.formats.mastra.databases import (
    InvalidRow,
    MastraDatabase,
    MastraRow,
    decode_json,
    get_time,
    get_time_or_none,
)
from mastra_memory.importers.records import (
    ImportedObservationalRecord,
    ImportNote,
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    derive_id,
)

TABLE = "mastra_observational_memory"

_COLUMNS = (
    "id",
    "lookupKey",
    "scope",
    "resourceId",
    "threadId",
    "activeObservations",
    "originType",
    "config",
    "generationCount",
    "pendingMessageTokens",
    "totalTokensObserved",
    "observationTokenCount",
    "observedMessageIds",
    "observedTimezone",
    "bufferedObservations",
    "bufferedObservationTokens",
    "bufferedMessageIds",
    "bufferedReflection",
    "bufferedReflectionTokens",
    "bufferedReflectionInputTokens",
    "reflectedObservationLineCount",
    "bufferedObservationChunks",
    "lastBufferedAtTokens",
    "metadata",
)
_UNUSED_COLUMNS = frozenset({"lastBufferedAtTimeZ"})
_HINT_KEYS = (
    "suggestedContinuation",
    "currentTask",
    "threadTitle",
    "extractedValues",
    "extractionFailures",
)


def read(store: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    """All generations of every lineage, oldest first; what was in progress is not any more."""
    for row in store.iter_rows(_build_statement(store)):
        location = f"{TABLE} {row['id']}"
        try:
            yield from _convert_record(store, resources, row, location)
        except InvalidRow as error:
            yield OmittedRecord("observations", "refused", location, str(error))


def _build_statement(store: MastraDatabase) -> str:
    """Each row with its rank among those of its generation, and the generation that is live."""
    columns = store.list_columns(TABLE)
    plain = ", ".join(
        f'o."{name}"' if name in columns else f'NULL AS "{name}"' for name in _COLUMNS
    )
    superseded = 'o."supersededBy" IS NULL' if "supersededBy" in columns else "1 = 1"
    created, updated, observed, buffered = (
        store.time_expression(f"o.{name}", columns - _UNUSED_COLUMNS) if name in columns else "NULL"
        for name in ("createdAt", "updatedAt", "lastObservedAt", "lastBufferedAtTime")
    )
    cursor = "NULL"
    if "lastObservedAt" in columns:  # the other column is filled in by itself
        cursor = f'CASE WHEN o."lastObservedAt" IS NOT NULL THEN {observed} END'
    return f"""WITH o AS (
        SELECT o.*, CASE WHEN {superseded} THEN 1 ELSE 0 END AS not_superseded
        FROM {{{TABLE}}} o),
    live AS (
        SELECT o.*, sum(not_superseded) OVER lineage AS live_rows,
            max(CASE WHEN not_superseded = 1 THEN "generationCount" END) OVER lineage AS named,
            max("generationCount") OVER lineage AS newest
        FROM o WINDOW lineage AS (PARTITION BY "lookupKey")),
    ranked AS (
        SELECT live.*, CASE WHEN live_rows = 1 THEN named ELSE newest END AS live_generation,
            row_number() OVER (PARTITION BY "lookupKey", "generationCount"
                ORDER BY CASE WHEN live_rows = 1 THEN not_superseded END DESC,
                    "createdAt", id) AS place
        FROM live)
    SELECT {plain}, {created} AS created_at, {updated} AS updated_at,
        {cursor} AS last_observed_at, {buffered} AS last_buffered_at_time,
        o.place, o.live_generation, t.id AS known_thread, t."resourceId" AS thread_resource
    FROM ranked o LEFT JOIN {{mastra_threads}} t ON t.id = o."threadId"
    ORDER BY o."lookupKey", o."generationCount", o.place"""


def _convert_record(
    store: MastraDatabase, resources: ResourceMapping, row: MastraRow, location: str
) -> Iterator[SourceItem]:
    if row["place"] > 1:
        yield OmittedRecord("observations", "skipped", location, "a duplicate of its generation")
        return
    generation = row["generationCount"]
    if not isinstance(generation, int) or generation < 0:
        raise InvalidRow("its generation is no number")
    if generation > row["live_generation"]:
        yield OmittedRecord(
            "observations", "skipped", location, "newer than the record that is live"
        )
        return
    if row["scope"] == "thread" and row["known_thread"] is None:
        yield OmittedRecord("observations", "skipped", location, "an orphan: its thread is missing")
        return
    thread_id, resource_id = _get_subject(row)
    if row["scope"] == "thread" and row["resourceId"] not in (None, "", resource_id):
        yield ImportNote(
            "observations named another resource than their thread and got the thread's"
        )
    chunks = list(_convert_chunks(store, row))
    is_live = generation == row["live_generation"]
    if chunks and not is_live:
        yield ImportNote("chunks stranded on retired observations were dropped")
    yield ImportedObservationalRecord(
        id=coercion.to_text(row["id"]),
        resource_id=resources.resolve(resource_id),
        thread_id=thread_id,
        generation_count=generation,
        values=_convert_fields(store, row),
        chunks=chunks if is_live else (),
        location=location,
    )


def _get_subject(row: MastraRow) -> tuple[str | None, str]:
    """Thread and resource: those of the thread, or what the key of the lineage says."""
    if row["scope"] == "thread":
        return coercion.to_text(row["threadId"]), coercion.to_text(row["thread_resource"])
    if row["scope"] == "resource":
        named = coercion.to_text(row["lookupKey"]).removeprefix("resource:")
        return None, coercion.to_text(row["resourceId"]) or named
    raise InvalidRow("its scope is neither thread nor resource")


def _convert_fields(store: MastraDatabase, row: MastraRow) -> Mapping[str, Any]:
    origin = row["originType"]
    return {
        "origin_type": origin if origin in ("initial", "reflection") else "initial",
        "active_observations": coercion.to_text(row["activeObservations"]),
        "observation_token_count": coercion.to_int(row["observationTokenCount"]),
        "total_tokens_observed": coercion.to_int(row["totalTokensObserved"]),
        "pending_message_tokens": coercion.to_int(row["pendingMessageTokens"]),
        "last_observed_at": get_time_or_none(row, "last_observed_at"),
        "observed_message_ids": coercion.to_texts(
            _decode_json_or_none(store, row["observedMessageIds"])
        )
        or None,
        "observed_timezone": coercion.to_text(row["observedTimezone"]),
        "last_buffered_at_tokens": coercion.to_int(row["lastBufferedAtTokens"]),
        "last_buffered_at_time": get_time_or_none(row, "last_buffered_at_time"),
        "buffered_reflection": coercion.to_text(row["bufferedReflection"]),
        "buffered_reflection_tokens": coercion.to_int_or_none(row["bufferedReflectionTokens"]),
        "buffered_reflection_input_tokens": coercion.to_int_or_none(
            row["bufferedReflectionInputTokens"]
        ),
        "reflected_observation_line_count": coercion.to_int_or_none(
            row["reflectedObservationLineCount"]
        ),
        "config": _convert_config(coercion.to_mapping(_decode_json_or_none(store, row["config"]))),
        "metadata": _decode_json_or_none(store, row["metadata"]),
        "created_at": get_time(row, "created_at"),
        "updated_at": get_time(row, "updated_at"),
    }


def _convert_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The thresholds, and those that were set for this record alone; never prompts or models."""
    overrides = _get_thresholds(coercion.to_mapping(config.get("_overrides")))
    kept = {**_get_thresholds(config), **({"_overrides": overrides} if overrides else {})}
    return {**kept, "scope": config["scope"]} if isinstance(config.get("scope"), str) else kept


def _get_thresholds(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for section, name in (("observation", "messageTokens"), ("reflection", "observationTokens")):
        value = coercion.to_mapping(config.get(section)).get(name)
        if value is not None:
            kept[section] = {name: value}
    return kept


def _convert_chunks(store: MastraDatabase, row: MastraRow) -> Iterator[Mapping[str, Any]]:
    """The buffered chunks, or the single buffer of older databases as one."""
    given = coercion.to_mappings(_decode_json_or_none(store, row["bufferedObservationChunks"]))
    if not given and coercion.to_text(row["bufferedObservations"]).strip():
        given = [_convert_legacy_chunk(store, row)]
    for place, chunk in enumerate(given):
        created_at = coercion.to_datetime(chunk.get("createdAt")) or get_time(row, "updated_at")
        fallback = f"ombuf-{derive_id(coercion.to_text(row['id']), str(place))}"
        yield {
            "id": coercion.to_text(chunk.get("id")) or fallback,
            "cycle_id": coercion.to_text(chunk.get("cycleId")) or fallback,
            "observations": coercion.to_text(chunk.get("observations")),
            "token_count": coercion.to_int(chunk.get("tokenCount")),
            "message_ids": coercion.to_texts(chunk.get("messageIds")),
            "message_tokens": coercion.to_int(chunk.get("messageTokens")),
            "last_observed_at": coercion.to_datetime(chunk.get("lastObservedAt")) or created_at,
            "hints": {key: chunk[key] for key in _HINT_KEYS if chunk.get(key) is not None},
            "created_at": created_at,
        }


def _convert_legacy_chunk(store: MastraDatabase, row: MastraRow) -> Mapping[str, Any]:
    return {
        "observations": row["bufferedObservations"],
        "tokenCount": row["bufferedObservationTokens"],
        "messageIds": _decode_json_or_none(store, row["bufferedMessageIds"]),
        "lastObservedAt": row["last_buffered_at_time"],
    }


def _decode_json_or_none(store: MastraDatabase, value: Any) -> Any:
    """What a column of JSON says, None for what cannot be read."""
    try:
        return decode_json(store, value)
    except ValueError:
        return None
