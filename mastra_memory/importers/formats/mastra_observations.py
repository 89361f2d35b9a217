"""Mastra's observational memory: generations of a lineage, and chunks that wait for activation."""

from collections.abc import Iterator, Mapping
from typing import Any

from mastra_memory.importers import coercion
from mastra_memory.importers.formats.mastra_databases import Row, Store
from mastra_memory.importers.formats.mastra_rows import Refused, json_of, moment_of, moment_or_none
from mastra_memory.importers.records import ImportedRecord, Item, LeftOut, Owner, Remark, derived_id

TABLE = "mastra_observational_memory"

_PLAIN = (
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
_NEVER_WRITTEN = frozenset({"lastBufferedAtTimeZ"})
_HINTS = (
    "suggestedContinuation",
    "currentTask",
    "threadTitle",
    "extractedValues",
    "extractionFailures",
)


def read(store: Store, owner: Owner) -> Iterator[Item]:
    """All generations of every lineage, oldest first; what was in progress is not any more."""
    for row in store.read(_statement(store)):
        where = f"{TABLE} {row['id']}"
        try:
            yield from _record(store, owner, row, where)
        except Refused as error:
            yield LeftOut("observations", "refused", where, str(error))


def _statement(store: Store) -> str:
    """Each row with its rank among those of its generation, and the generation that is live."""
    columns = store.columns(TABLE)
    plain = ", ".join(f'o."{name}"' if name in columns else f'NULL AS "{name}"' for name in _PLAIN)
    superseded = 'o."supersededBy" IS NULL' if "supersededBy" in columns else "1 = 1"
    created, updated, observed, buffered = (
        store.moment(f"o.{name}", columns - _NEVER_WRITTEN) if name in columns else "NULL"
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


def _record(store: Store, owner: Owner, row: Row, where: str) -> Iterator[Item]:
    if row["place"] > 1:
        yield LeftOut("observations", "skipped", where, "a duplicate of its generation")
        return
    generation = row["generationCount"]
    if not isinstance(generation, int) or generation < 0:
        raise Refused("its generation is no number")
    if generation > row["live_generation"]:
        yield LeftOut("observations", "skipped", where, "newer than the record that is live")
        return
    if row["scope"] == "thread" and row["known_thread"] is None:
        yield LeftOut("observations", "skipped", where, "an orphan: its thread is missing")
        return
    thread_id, resource_id = _about(row)
    if row["scope"] == "thread" and row["resourceId"] not in (None, "", resource_id):
        yield Remark("observations named another resource than their thread and got the thread's")
    chunks = list(_chunks(store, row))
    is_live = generation == row["live_generation"]
    if chunks and not is_live:
        yield Remark("chunks stranded on retired observations were dropped")
    yield ImportedRecord(
        id=coercion.text(row["id"]),
        resource_id=owner.of(resource_id),
        thread_id=thread_id,
        generation_count=generation,
        values=_values(store, row),
        chunks=chunks if is_live else (),
        where=where,
    )


def _about(row: Row) -> tuple[str | None, str]:
    """Thread and resource: those of the thread, or what the key of the lineage says."""
    if row["scope"] == "thread":
        return coercion.text(row["threadId"]), coercion.text(row["thread_resource"])
    if row["scope"] == "resource":
        named = coercion.text(row["lookupKey"]).removeprefix("resource:")
        return None, coercion.text(row["resourceId"]) or named
    raise Refused("its scope is neither thread nor resource")


def _values(store: Store, row: Row) -> Mapping[str, Any]:
    origin = row["originType"]
    return {
        "origin_type": origin if origin in ("initial", "reflection") else "initial",
        "active_observations": coercion.text(row["activeObservations"]),
        "observation_token_count": coercion.whole(row["observationTokenCount"]),
        "total_tokens_observed": coercion.whole(row["totalTokensObserved"]),
        "pending_message_tokens": coercion.whole(row["pendingMessageTokens"]),
        "last_observed_at": moment_or_none(row, "last_observed_at"),
        "observed_message_ids": coercion.texts(_json(store, row["observedMessageIds"])) or None,
        "observed_timezone": coercion.text(row["observedTimezone"]),
        "last_buffered_at_tokens": coercion.whole(row["lastBufferedAtTokens"]),
        "last_buffered_at_time": moment_or_none(row, "last_buffered_at_time"),
        "buffered_reflection": coercion.text(row["bufferedReflection"]),
        "buffered_reflection_tokens": coercion.whole_or_none(row["bufferedReflectionTokens"]),
        "buffered_reflection_input_tokens": coercion.whole_or_none(
            row["bufferedReflectionInputTokens"]
        ),
        "reflected_observation_line_count": coercion.whole_or_none(
            row["reflectedObservationLineCount"]
        ),
        "config": _config(coercion.mapping(_json(store, row["config"]))),
        "metadata": _json(store, row["metadata"]),
        "created_at": moment_of(row, "created_at"),
        "updated_at": moment_of(row, "updated_at"),
    }


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The thresholds, and those that were set for this record alone; never prompts or models."""
    overrides = _thresholds(coercion.mapping(config.get("_overrides")))
    kept = {**_thresholds(config), **({"_overrides": overrides} if overrides else {})}
    return {**kept, "scope": config["scope"]} if isinstance(config.get("scope"), str) else kept


def _thresholds(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for section, name in (("observation", "messageTokens"), ("reflection", "observationTokens")):
        value = coercion.mapping(config.get(section)).get(name)
        if value is not None:
            kept[section] = {name: value}
    return kept


def _chunks(store: Store, row: Row) -> Iterator[Mapping[str, Any]]:
    """The buffered chunks, or the single buffer of older databases as one."""
    given = coercion.objects(_json(store, row["bufferedObservationChunks"]))
    if not given and coercion.text(row["bufferedObservations"]).strip():
        given = [_legacy_chunk(store, row)]
    for place, chunk in enumerate(given):
        created_at = coercion.moment(chunk.get("createdAt")) or moment_of(row, "updated_at")
        fallback = f"ombuf-{derived_id(coercion.text(row['id']), str(place))}"
        yield {
            "id": coercion.text(chunk.get("id")) or fallback,
            "cycle_id": coercion.text(chunk.get("cycleId")) or fallback,
            "observations": coercion.text(chunk.get("observations")),
            "token_count": coercion.whole(chunk.get("tokenCount")),
            "message_ids": coercion.texts(chunk.get("messageIds")),
            "message_tokens": coercion.whole(chunk.get("messageTokens")),
            "last_observed_at": coercion.moment(chunk.get("lastObservedAt")) or created_at,
            "hints": {key: chunk[key] for key in _HINTS if chunk.get(key) is not None},
            "created_at": created_at,
        }


def _legacy_chunk(store: Store, row: Row) -> Mapping[str, Any]:
    return {
        "observations": row["bufferedObservations"],
        "tokenCount": row["bufferedObservationTokens"],
        "messageIds": _json(store, row["bufferedMessageIds"]),
        "lastObservedAt": row["last_buffered_at_time"],
    }


def _json(store: Store, value: Any) -> Any:
    """What a column of JSON says, None for what cannot be read."""
    try:
        return json_of(store, value)
    except ValueError:
        return None
