"""Read Mastra's observational memory: generations, and chunks that wait for activation.

The generations of one thread or resource share a lookup key. Mastra may have written several rows
of one generation, and rows newer than the one it uses.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mastra_memory.importers import coercion
from mastra_memory.importers.formats.mastra import queries
from mastra_memory.importers.formats.mastra.databases import (
    InvalidRowError,
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

_HINT_KEYS = (
    "suggestedContinuation",
    "currentTask",
    "threadTitle",
    "extractedValues",
    "extractionFailures",
)


def read(database: MastraDatabase, resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield all generations, oldest first. Flags such as `isObserving` are not imported."""
    for row in database.iter_rows(queries.select_observations(database)):
        location = f"{TABLE} {row['id']}"
        try:
            yield from _convert_record(database, resources, row, location)
        except InvalidRowError as error:
            yield OmittedRecord("observations", "refused", location, str(error))


def _convert_record(
    database: MastraDatabase, resources: ResourceMapping, row: MastraRow, location: str
) -> Iterator[SourceItem]:
    if row["place"] > 1:
        yield OmittedRecord(
            "observations", "skipped", location, "another row of the same generation is used"
        )
        return
    generation = row["generationCount"]
    if not isinstance(generation, int) or generation < 0:
        raise InvalidRowError("its generation is not a number")
    if generation > row["live_generation"]:
        yield OmittedRecord("observations", "skipped", location, "newer than the live generation")
        return
    if row["scope"] == "thread" and row["known_thread"] is None:
        yield OmittedRecord("observations", "skipped", location, "its thread is missing")
        return
    thread_id, resource_id = _get_subject(row)
    if row["scope"] == "thread" and row["resourceId"] not in (None, "", resource_id):
        yield ImportNote(
            "observations with another resource than their thread got the resource of the thread"
        )
    chunks = list(_convert_chunks(database, row))
    is_live = generation == row["live_generation"]
    if chunks and not is_live:
        yield ImportNote("chunks of earlier generations were dropped")
    yield ImportedObservationalRecord(
        id=coercion.to_text(row["id"]),
        resource_id=resources.resolve(resource_id),
        thread_id=thread_id,
        generation_count=generation,
        values=_convert_fields(database, row),
        chunks=chunks if is_live else (),
        location=location,
    )


def _get_subject(row: MastraRow) -> tuple[str | None, str]:
    """Return the thread id and the resource id, the latter from the lookup key if it is missing."""
    if row["scope"] == "thread":
        return coercion.to_text(row["threadId"]), coercion.to_text(row["thread_resource"])
    if row["scope"] == "resource":
        from_key = coercion.to_text(row["lookupKey"]).removeprefix("resource:")
        return None, coercion.to_text(row["resourceId"]) or from_key
    raise InvalidRowError("its scope is neither thread nor resource")


def _convert_fields(database: MastraDatabase, row: MastraRow) -> Mapping[str, Any]:
    origin = row["originType"]
    return {
        "origin_type": origin if origin in ("initial", "reflection") else "initial",
        "active_observations": coercion.to_text(row["activeObservations"]),
        "observation_token_count": coercion.to_int(row["observationTokenCount"]),
        "total_tokens_observed": coercion.to_int(row["totalTokensObserved"]),
        "pending_message_tokens": coercion.to_int(row["pendingMessageTokens"]),
        "last_observed_at": get_time_or_none(row, "last_observed_at"),
        "observed_message_ids": coercion.to_texts(
            _decode_json_or_none(database, row["observedMessageIds"])
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
        "config": _convert_config(
            coercion.to_mapping(_decode_json_or_none(database, row["config"]))
        ),
        "metadata": _decode_json_or_none(database, row["metadata"]),
        "created_at": get_time(row, "created_at"),
        "updated_at": get_time(row, "updated_at"),
    }


def _convert_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the thresholds, including those of this record alone, without prompts and models."""
    overrides = _get_thresholds(coercion.to_mapping(config.get("_overrides")))
    result = {**_get_thresholds(config), **({"_overrides": overrides} if overrides else {})}
    return {**result, "scope": config["scope"]} if isinstance(config.get("scope"), str) else result


def _get_thresholds(config: Mapping[str, Any]) -> dict[str, Any]:
    thresholds = {}
    for section, name in (("observation", "messageTokens"), ("reflection", "observationTokens")):
        value = coercion.to_mapping(config.get(section)).get(name)
        if value is not None:
            thresholds[section] = {name: value}
    return thresholds


def _convert_chunks(database: MastraDatabase, row: MastraRow) -> Iterator[Mapping[str, Any]]:
    """Yield the buffered chunks, or the single buffer of older databases as one chunk."""
    chunks = coercion.to_mappings(_decode_json_or_none(database, row["bufferedObservationChunks"]))
    if not chunks and coercion.to_text(row["bufferedObservations"]).strip():
        chunks = [_convert_legacy_chunk(database, row)]
    for index, chunk in enumerate(chunks):
        created_at = coercion.to_datetime(chunk.get("createdAt")) or get_time(row, "updated_at")
        fallback = f"ombuf-{derive_id(coercion.to_text(row['id']), str(index))}"
        yield {
            "id": coercion.to_text(chunk.get("id")) or fallback,
            "cycle_id": coercion.to_text(chunk.get("cycleId")) or fallback,
            "observations": coercion.to_text(chunk.get("observations")),
            "token_count": coercion.to_int(chunk.get("tokenCount")),
            "message_ids": coercion.to_texts(chunk.get("messageIds")),
            "message_tokens": coercion.to_int(chunk.get("messageTokens")),
            "last_observed_at": coercion.to_datetime(chunk.get("lastObservedAt")) or created_at,
            "origin": "import",
            "hints": {key: chunk[key] for key in _HINT_KEYS if chunk.get(key) is not None},
            "created_at": created_at,
        }


def _convert_legacy_chunk(database: MastraDatabase, row: MastraRow) -> Mapping[str, Any]:
    return {
        "observations": row["bufferedObservations"],
        "tokenCount": row["bufferedObservationTokens"],
        "messageIds": _decode_json_or_none(database, row["bufferedMessageIds"]),
        "lastObservedAt": row["last_buffered_at_time"],
    }


def _decode_json_or_none(database: MastraDatabase, value: Any) -> Any:
    """Return the value of a JSON column, or None if it cannot be read."""
    try:
        return decode_json(database, value)
    except ValueError:
        return None
