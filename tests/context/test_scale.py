"""The context of a long thread is read by indexes.

How many milliseconds that takes is measured by `python -m benchmarks.recall`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.embedding import embedder, indexing
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.memory import Memory
from tests.support.factories import fill, make_thread

MESSAGES = 20_000
OPTIONS: dict[str, Any] = {
    "lastMessages": 20,
    "workingMemory": {"enabled": True},
    "semanticRecall": {"topK": 4, "messageRange": 1, "scope": "resource"},
}
TOPICS = ("cats and dogs", "trains to Rome", "a broken tent", "invoices", "soup", "chess")


def count_full_scans() -> int:
    """Return how often the whole table of messages was read.

    Vectors are not counted: for a resource of this size PostgreSQL may rightly prefer to compare
    all of them, and tests/search checks when the index is used.
    """
    sql.fetch_one("SELECT pg_stat_force_next_flush()")
    row = sql.fetch_one(
        "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'mastra_memory_message'"
    )
    assert row is not None
    return int(row[0])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["vector", "hybrid"])
@pytest.mark.django_db(transaction=True)
def test_context__never_scans_20000_messages(
    memory_settings: Callable[..., None], mode: str
) -> None:
    memory_settings()
    thread = make_thread("ann", "t")
    fill(thread, MESSAGES)
    # The rows of other resources. Without them, reading the whole table would be the best plan.
    fill(make_thread("ben", "other"), 3 * MESSAGES)
    sql.execute(
        """UPDATE mastra_memory_message SET text = topic.text,
            search = to_tsvector('english', topic.text),
            content = jsonb_set(content, '{parts,0,text}', to_jsonb(topic.text))
        FROM (SELECT id, 'We spoke of ' || (%s::text[])[1 + sequence %% 6] || ', ' || text AS text
            FROM mastra_memory_message) AS topic
        WHERE topic.id = mastra_memory_message.id""",
        [list(TOPICS)],
    )
    model = conf.app_settings().EMBEDDER
    sql.execute(
        """INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
        SELECT id, thread_id, resource_id, %s FROM mastra_memory_message
        WHERE thread_id = 't'""",
        [model],
    )
    while indexing.embed_batch(model)[0]:
        pass
    # Index-only scans need the visibility map, which autovacuum keeps up to date in practice.
    sql.execute("VACUUM ANALYZE")
    index = VectorIndex.for_model(model, len(embedder.embed_query(model, ["x"]).vectors[0]))
    index.build()
    recall = {**OPTIONS["semanticRecall"], "mode": mode}
    memory = Memory(options={**OPTIONS, "semanticRecall": recall})
    memory.update_working_memory("t", "name: Ann")
    memory.context("t", resource_id="ann", new_messages="What did we say about soup?")
    before = count_full_scans()
    for number, topic in enumerate(TOPICS):
        query = f"What did we say about {topic} {number}?"
        context = memory.context("t", resource_id="ann", new_messages=query)
        assert len(context.messages) > 20
    scans = count_full_scans() - before
    index.drop()
    assert scans == 0
