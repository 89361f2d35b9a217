"""The migration that adds the state of messages to observational memory."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from mastra_memory.db import sql

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE, AFTER = "0002_database_objects", "0003_observation"
ROWS = """
INSERT INTO mastra_memory_thread (id, resource_id, title, title_source)
VALUES ('t', 'r', '', '');
INSERT INTO mastra_memory_message
    (id, thread_id, resource_id, role, type, signal, content, text)
SELECT id, 't', 'r', 'user', 'v2', '', '{}', '' FROM unnest(ARRAY['m0', 'm1']) AS id;
INSERT INTO mastra_memory_observationalrecord (id, scope, thread_id, resource_id,
    generation_count, origin_type, active_observations, observation_token_count,
    total_tokens_observed, pending_message_tokens, observed_timezone, last_buffered_at_tokens,
    buffered_reflection, config, observing_until)
SELECT r.id, r.scope, r.thread_id, 'r', r.number, 'initial', '', 0, 0, 0, '', 0, '', '{}', now()
FROM (VALUES ('r0', 'thread', 't', 0), ('r2', 'thread', 't', 2), ('r1', 'thread', 't', 1),
    ('s', 'resource', NULL, 5)) AS r(id, scope, thread_id, number);
INSERT INTO mastra_memory_observationchunk (id, record_id, position, cycle_id, observations,
    token_count, message_ids, message_tokens, last_observed_at, hints)
SELECT id, record_id, position, 'cycle', '', 0, ids::jsonb, 0, now(), '{}'
FROM (VALUES ('c0', 'r2', 0, '["m0", "gone"]'), ('c1', 'r2', 1, '["m0"]'),
    ('old', 'r1', 0, '["m1"]')) AS c(id, record_id, position, ids);
"""


def migrate(name: str) -> None:
    """Migrate the test database."""
    executor = MigrationExecutor(connection)
    executor.migrate([("mastra_memory", name)])


def latest() -> str:
    """Return the name of the newest migration."""
    nodes = MigrationExecutor(connection).loader.graph.leaf_nodes("mastra_memory")
    return nodes[0][1]


@pytest.fixture
def old_database() -> Iterator[None]:
    """Undo the migration, and run all migrations again after the test."""
    migrate(BEFORE)
    try:
        yield
    finally:
        migrate(latest())


def fetch(columns: str, table: str) -> list[tuple[Any, ...]]:
    """Return columns of all rows of a table, in order."""
    return sql.fetch_all(f"SELECT {columns} FROM mastra_memory_{table} ORDER BY 1")


def test_migrate__existing_generations_get_their_successors(old_database: None) -> None:
    sql.execute(ROWS)
    migrate(AFTER)
    links = fetch("id, superseded_by_id", "observationalrecord")
    assert links == [("r0", "r1"), ("r1", "r2"), ("r2", None), ("s", None)]
    tracked = fetch("message_id, scope, thread_id, resource_id, chunk_id", "messageobservation")
    assert tracked == [("m0", "thread", "t", "r", "c0")]
    chunks = fetch("id, cycle_id, thread_id, activated_at", "observationchunk")
    assert chunks == [
        ("c0", "cycle", "t", None),
        ("c1", "c1", "t", None),
        ("old", "cycle", "t", None),
    ]
    newest = sql.fetch_one("SELECT max(sequence) FROM mastra_memory_message")
    assert set(fetch("imported_sequence", "observationalrecord")) == {newest}


def test_migrate__back_keeps_buffered_chunks_only(old_database: None) -> None:
    sql.execute(ROWS)
    migrate(AFTER)
    sql.execute("UPDATE mastra_memory_observationchunk SET activated_at = now() WHERE id = 'c1'")
    sql.execute("UPDATE mastra_memory_observationalrecord SET origin_type = 'edit'")
    migrate(BEFORE)
    assert [row[0] for row in fetch("id", "observationchunk")] == ["c0", "old"]
    assert set(fetch("origin_type", "observationalrecord")) == {("reflection",)}
    sql.execute("UPDATE mastra_memory_message SET content = '{\"a\": 1}', resource_id = 'r'")
