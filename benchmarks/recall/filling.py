"""Load many messages and their vectors straight into the tables."""

import json
from collections.abc import Sequence
from itertools import islice

import orjson
from django.db import connection

from benchmarks.recall import talk
from mastra_memory import conf, sql
from mastra_memory.embedding import embedder

BATCH = 5_000


def fill(
    sizes: Sequence[tuple[str, int]], *, with_vectors: bool = True, per_thread: int = 50
) -> int:
    """Store the messages of `talk`, with vectors of the embedder in use. Returns how many."""
    rows = talk.messages(sizes, per_thread)
    total = 0
    while batch := list(islice(rows, BATCH)):
        _store(batch)
        if with_vectors:
            _store_vectors(batch)
        total += len(batch)
    vacuum()
    return total


def vacuum() -> None:
    """Tidy up and gather statistics, so that no autovacuum is due while measuring."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")


def clear() -> None:
    """Remove everything."""
    sql.execute("TRUNCATE mastra_memory_thread CASCADE")


def _store(batch: list[tuple]) -> None:
    threads = {(thread, owner) for _, thread, owner, _, _, _ in batch}
    sql.execute(
        """INSERT INTO mastra_memory_thread (id, resource_id, title, title_source)
        SELECT t.*, '', '' FROM unnest(%s::text[], %s::text[]) AS t ON CONFLICT DO NOTHING""",
        [list(column) for column in zip(*threads, strict=True)],
    )
    ids, threads_of, owners, roles, texts, times = map(list, zip(*batch, strict=True))
    bodies = [
        json.dumps({"format": 2, "parts": [{"type": "text", "text": said}]}) for said in texts
    ]
    sql.execute(
        """INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal,
            content, text, search, created_at)
        SELECT i.id, i.thread_id, i.owner, i.role, 'v2', '', i.body::jsonb, i.said,
            mastra_memory_words('english', i.said), i.at
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
            %s::timestamptz[]) WITH ORDINALITY
            AS i(id, thread_id, owner, role, body, said, at, place) ORDER BY i.place""",
        [ids, threads_of, owners, roles, bodies, texts, times],
    )


def _store_vectors(batch: list[tuple]) -> None:
    model = conf.app_settings().EMBEDDER
    ids, threads_of, owners, _, texts, _ = map(list, zip(*batch, strict=True))
    made = embedder.embed_passages(model, texts)
    vectors = [orjson.dumps(v, option=orjson.OPT_SERIALIZE_NUMPY).decode() for v in made.vectors]
    sql.execute(
        """INSERT INTO mastra_memory_messageembedding (message_id, thread_id, resource_id, model,
            dimensions, passage, text_hash, embedding)
        SELECT i.id, i.thread_id, i.owner, %s, %s, 0, sha256(convert_to(i.said, 'UTF8')), i.vector
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::vector[])
            AS i(id, thread_id, owner, said, vector)""",
        [model, made.dimensions, ids, threads_of, owners, texts, vectors],
    )
