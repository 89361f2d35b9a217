"""Create small databases like those of Mastra, in SQLite and in PostgreSQL."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

TABLES = {
    "mastra_threads": {
        "id": "text",
        "resourceId": "text",
        "title": "text",
        "metadata": "json",
        "createdAt": "time",
        "updatedAt": "time",
    },
    "mastra_resources": {
        "id": "text",
        "workingMemory": "text",
        "metadata": "json",
        "createdAt": "time",
        "updatedAt": "time",
    },
    "mastra_messages": {
        "id": "text",
        "thread_id": "text",
        "content": "text",
        "role": "text",
        "type": "text",
        "createdAt": "time",
        "resourceId": "text",
    },
    "mastra_observational_memory": {
        "id": "text",
        "lookupKey": "text",
        "scope": "text",
        "resourceId": "text",
        "threadId": "text",
        "activeObservations": "text",
        "originType": "text",
        "config": "text",
        "generationCount": "integer",
        "lastObservedAt": "time",
        "lastReflectionAt": "time",
        "pendingMessageTokens": "integer",
        "totalTokensObserved": "integer",
        "observationTokenCount": "integer",
        "isObserving": "flag",
        "isReflecting": "flag",
        "observedMessageIds": "json",
        "observedTimezone": "text",
        "bufferedObservations": "text",
        "bufferedObservationTokens": "integer",
        "bufferedMessageIds": "json",
        "bufferedReflection": "text",
        "bufferedReflectionTokens": "integer",
        "bufferedReflectionInputTokens": "integer",
        "reflectedObservationLineCount": "integer",
        "bufferedObservationChunks": "json",
        "isBufferingObservation": "flag",
        "isBufferingReflection": "flag",
        "lastBufferedAtTokens": "integer",
        "lastBufferedAtTime": "time",
        "metadata": "json",
        "createdAt": "time",
        "updatedAt": "time",
    },
}
"""The type of each column. In PostgreSQL each time has a second column with a time zone."""


def make_thread_row(thread_id: str = "t1", resource_id: str = "r1", **more: Any) -> dict[str, Any]:
    return {
        "id": thread_id,
        "resourceId": resource_id,
        "title": "",
        "createdAt": "2024-01-01T10:00:00.001Z",
        "updatedAt": "2024-01-02T10:00:00.002Z",
        **more,
    }


def make_message_row(message_id: str = "m1", thread_id: str = "t1", **more: Any) -> dict[str, Any]:
    return {
        "id": message_id,
        "thread_id": thread_id,
        "content": json.dumps({"format": 2, "parts": [{"type": "text", "text": message_id}]}),
        "role": "user",
        "type": "v2",
        "createdAt": "2024-01-01T10:00:00.123Z",
        "resourceId": "r1",
        **more,
    }


def make_resource_row(resource_id: str, text: str | None, **more: Any) -> dict[str, Any]:
    moments = {"createdAt": "2024-01-01T10:00:00.000Z", "updatedAt": "2024-01-01T10:00:00.000Z"}
    return {"id": resource_id, "workingMemory": text, **moments, **more}


def make_record_row(record_id: str = "o1", generation: int = 0, **more: Any) -> dict[str, Any]:
    """Return a generation of observations of the thread `t1` of `r1`."""
    return {
        "id": record_id,
        "lookupKey": "thread:t1",
        "scope": "thread",
        "resourceId": "r1",
        "threadId": "t1",
        "activeObservations": f"noted {generation}",
        "originType": "initial",
        "config": "{}",
        "generationCount": generation,
        "pendingMessageTokens": 1,
        "totalTokensObserved": 2,
        "observationTokenCount": 3,
        "isObserving": 1,
        "isReflecting": 1,
        "isBufferingObservation": 1,
        "isBufferingReflection": 1,
        "lastBufferedAtTokens": 4,
        "createdAt": "2024-01-01T10:00:00.500Z",
        "updatedAt": "2024-01-01T11:00:00.500Z",
        **more,
    }


def make_chunk(chunk_id: str = "ombuf-1", **more: Any) -> dict[str, Any]:
    return {
        "id": chunk_id,
        "cycleId": "buffer-obs-1",
        "observations": "soon",
        "tokenCount": 5,
        "messageIds": ["m1"],
        "messageTokens": 31,
        "lastObservedAt": "2024-01-01T10:00:00.124Z",
        "createdAt": "2024-01-01T10:00:01.000Z",
        **more,
    }


def make_libsql(
    path: Path, rows: Rows, *, without: Sequence[str] = (), record_column: str = ""
) -> Path:
    """Create a LibSQL file. Bytes and text in JSON columns are stored unchanged.

    The tables `without` are missing. `record_column` is one more column of the table of
    observations.
    """
    connection = sqlite3.connect(path)
    for table, columns in TABLES.items():
        if table in without:
            continue
        names = [*columns, *([record_column] if record_column and "lookupKey" in columns else ())]
        declared = ", ".join(f'"{name}"' for name in names)
        connection.execute(f"CREATE TABLE {table} ({declared}, PRIMARY KEY (id))")
        for row in rows.get(table, ()):
            given = ", ".join(f'"{name}"' for name in row)
            places = ", ".join("?" for _ in row)
            values = [
                json.dumps(value) if isinstance(value, dict | list) else value
                for value in row.values()
            ]
            connection.execute(f"INSERT INTO {table} ({given}) VALUES ({places})", values)
    connection.commit()
    connection.close()
    return path


_POSTGRES = {
    "text": "text",
    "json": "jsonb",
    "integer": "integer",
    "flag": "boolean",
    "time": "timestamp",
}


def make_postgres(execute: Any, schema: str, rows: Rows) -> None:
    """Create the tables in a new schema. Times with a time zone have names ending in `Z`."""
    execute(f'CREATE SCHEMA "{schema}"')
    for table, columns in TABLES.items():
        declared = [f'"{name}" {_POSTGRES[kind]}' for name, kind in columns.items()]
        zoned = [name for name, kind in columns.items() if kind == "time"]
        declared += [f'"{name}Z" timestamptz DEFAULT now()' for name in zoned]
        execute(f'CREATE TABLE "{schema}".{table} ({", ".join(declared)}, PRIMARY KEY (id))')
        for row in rows.get(table, ()):
            names = ", ".join(f'"{name}"' for name in row)
            places = ", ".join("%s" for _ in row)
            execute(
                f'INSERT INTO "{schema}".{table} ({names}) VALUES ({places})',
                [_value(columns.get(name, "time"), value) for name, value in row.items()],
            )


def _value(kind: str, value: Any) -> Any:
    if kind == "flag":
        return bool(value)
    return json.dumps(value) if kind == "json" and value is not None else value
