"""Load many messages and their vectors directly into the tables."""

import json
from collections.abc import Sequence
from itertools import islice

import orjson
from django.db import connection

from benchmarks.recall import corpus
from benchmarks.recall.corpus import MessageRow
from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.embedding import embedder

BATCH_SIZE = 5_000


def load(
    sizes: Sequence[tuple[str, int]], *, with_vectors: bool = True, per_thread: int = 50
) -> int:
    """Store generated messages and return their number.

    `sizes` gives the number of messages of each resource. Vectors come from the configured
    embedder.
    """
    rows = corpus.generate_messages(sizes, per_thread)
    total = 0
    while batch := list(islice(rows, BATCH_SIZE)):
        _insert_messages(batch)
        if with_vectors:
            _insert_vectors(batch)
        total += len(batch)
    vacuum()
    return total


def vacuum() -> None:
    """Vacuum and analyze, so that autovacuum has nothing to do during a measurement."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")


def clear() -> None:
    """Delete all threads and everything that depends on them."""
    sql.execute("TRUNCATE mastra_memory_thread CASCADE")


def _insert_messages(batch: list[MessageRow]) -> None:
    threads = {(row.thread_id, row.resource_id) for row in batch}
    sql.execute(
        """INSERT INTO mastra_memory_thread (id, resource_id, title, title_source)
        SELECT t.*, '', '' FROM unnest(%s::text[], %s::text[]) AS t ON CONFLICT DO NOTHING""",
        [list(column) for column in zip(*threads, strict=True)],
    )
    contents = [
        json.dumps({"format": 2, "parts": [{"type": "text", "text": row.text}]}) for row in batch
    ]
    sql.execute(
        """INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal,
            content, text, search, created_at)
        SELECT i.id, i.thread_id, i.resource_id, i.role, 'v2', '', i.content::jsonb, i.text,
            to_tsvector('english', i.text), i.created_at
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
            %s::timestamptz[]) WITH ORDINALITY
            AS i(id, thread_id, resource_id, role, content, text, created_at, n) ORDER BY i.n""",
        [
            [row.id for row in batch],
            [row.thread_id for row in batch],
            [row.resource_id for row in batch],
            [row.role for row in batch],
            contents,
            [row.text for row in batch],
            [row.created_at for row in batch],
        ],
    )


def _insert_vectors(batch: list[MessageRow]) -> None:
    model = conf.app_settings().EMBEDDER
    texts = [row.text for row in batch]
    embedded = embedder.embed_passages(model, texts)
    vectors = [
        orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        for vector in embedded.vectors
    ]
    sql.execute(
        """INSERT INTO mastra_memory_messageembedding (message_id, thread_id, resource_id, model,
            dimensions, passage, text_hash, embedding)
        SELECT i.id, i.thread_id, i.resource_id, %s, %s, 0,
            sha256(convert_to(i.text, 'UTF8')), i.vector
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::vector[])
            AS i(id, thread_id, resource_id, text, vector)""",
        [
            model,
            embedded.dimensions,
            [row.id for row in batch],
            [row.thread_id for row in batch],
            [row.resource_id for row in batch],
            texts,
            vectors,
        ],
    )
