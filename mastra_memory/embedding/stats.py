"""Count the vectors and the pending requests of each model, and delete a model's vectors."""

import time
from dataclasses import dataclass

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.embedding.queue import EMBEDDABLE
from mastra_memory.embedding.vector_index import TABLE, VectorIndex

DELETE_BATCH_SIZE = 5_000
"""Rows that are deleted at a time, so that no lock is held for long."""
LOCKED_ROWS_DELAY_SECONDS = 0.1
"""Delay before retrying rows that other transactions have locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorCounts:
    """The vectors of one model and length."""

    model: str
    dimensions: int
    messages: int
    vectors: int
    index_ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The pending and failed requests of one model."""

    model: str
    pending: int
    failed: int
    last_error: str


def list_vector_counts() -> list[VectorCounts]:
    """Return the counts of each model and length that has vectors, the current `EMBEDDER` first."""
    found = sql.fetch_all(
        f"""SELECT model, dimensions, count(DISTINCT message_id), count(*) FROM {TABLE}
        GROUP BY model, dimensions ORDER BY model <> %s, model, dimensions""",
        [conf.app_settings().EMBEDDER],
    )
    return [
        VectorCounts(
            model=model,
            dimensions=dimensions,
            messages=messages,
            vectors=vectors,
            index_ready=VectorIndex.for_model(model, dimensions).is_ready(),
        )
        for model, dimensions, messages, vectors in found
    ]


def list_backlogs() -> list[Backlog]:
    """Return the pending and failed requests of each model that has any."""
    found = sql.fetch_all(
        """SELECT model, count(*) FILTER (WHERE failed_at IS NULL), count(failed_at),
            coalesce(max(error), '') FROM mastra_memory_embeddingrequest
        GROUP BY model ORDER BY model"""
    )
    return [
        Backlog(model=model, pending=pending, failed=failed, last_error=error)
        for model, pending, failed, error in found
    ]


def count_never_enqueued() -> int:
    """Return how many messages with text have neither vectors nor a request."""
    found = sql.fetch_one(
        f"""SELECT count(*) FROM mastra_memory_message m WHERE {EMBEDDABLE}
        AND NOT EXISTS (SELECT 1 FROM {TABLE} e WHERE e.message_id = m.id)
        AND NOT EXISTS (SELECT 1 FROM mastra_memory_embeddingrequest r
            WHERE r.message_id = m.id)"""
    )
    return found[0] if found else 0


def list_dimensions() -> dict[str, list[int]]:
    """Return the lengths of the stored vectors of each model.

    PostgreSQL has no "skip scan" for SELECT DISTINCT, so a recursive query jumps from one model and
    length to the next in the index. It reads only a few entries, even with millions of vectors.
    """
    found = sql.fetch_all(
        f"""WITH RECURSIVE kinds AS (
            (SELECT model, dimensions FROM {TABLE} ORDER BY model, dimensions LIMIT 1)
            UNION ALL
            SELECT next.* FROM kinds k CROSS JOIN LATERAL (
                SELECT e.model, e.dimensions FROM {TABLE} e
                WHERE (e.model, e.dimensions) > (k.model, k.dimensions)
                ORDER BY e.model, e.dimensions LIMIT 1) next)
        SELECT model, array_agg(dimensions) FROM kinds GROUP BY model"""
    )
    return {model: sorted(dimensions) for model, dimensions in found}


def delete_model(model: str) -> int:
    """Delete the requests, indexes and vectors of a model, and return how many vectors.

    Do not call it inside a transaction, because the indexes are dropped concurrently.
    """
    for dimensions in list_dimensions().get(model, []):
        VectorIndex.for_model(model, dimensions).drop()
    _delete_rows("mastra_memory_embeddingrequest", model)
    return _delete_rows(TABLE, model)


def _delete_rows(table: str, model: str) -> int:
    """Delete the model's rows in batches. Rows that are locked by others are retried."""
    total = 0
    while True:
        deleted = sql.execute(
            f"""DELETE FROM {table} WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM {table} WHERE model = %s LIMIT %s FOR UPDATE SKIP LOCKED))""",
            [model, DELETE_BATCH_SIZE],
        )
        total += deleted
        if deleted == 0:
            remaining = f"SELECT EXISTS (SELECT 1 FROM {table} WHERE model = %s)"
            if sql.fetch_all(remaining, [model]) == [(False,)]:
                return total
            time.sleep(LOCKED_ROWS_DELAY_SECONDS)
