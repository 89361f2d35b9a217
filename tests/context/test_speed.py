"""How long an agent waits for its context in a long thread."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.embedding import embedder, indexing
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.memory import Memory
from tests.support.factories import fill, make_thread

MESSAGES = 20_000
ROUNDS = 60
BOUNDS = {"vector": 0.025, "hybrid": 0.050}
"""Seconds of work at the 95th percentile, beyond what embedding the query takes.

A loaded machine works at half its speed. What the clock says on a quiet one, `python -m
benchmarks.recall` tells.
"""
OPTIONS: dict[str, Any] = {
    "lastMessages": 20,
    "workingMemory": {"enabled": True},
    "semanticRecall": {"topK": 4, "messageRange": 1, "scope": "resource"},
}
TOPICS = ("cats and dogs", "trains to Rome", "a broken tent", "invoices", "soup", "chess")


def p95_of(work: Callable[[str], Any], queries: list[str]) -> float:
    """Seconds of work, ours and the database's, in which 95 of 100 calls are done.

    Not what the clock says: that is also about what else the machine does.
    """
    found = sql.fetch_one("SELECT pg_backend_pid()")
    spent = Path(f"/proc/{found[0] if found else 0}/schedstat")
    taken = []
    for query in queries:
        begun = _seconds(spent)
        work(query)
        taken.append(_seconds(spent) - begun)
    return sorted(taken)[int(len(taken) * 0.95)]


def _seconds(spent: Path) -> float:
    """So far; by the clock where the system does not tell how long a process has worked."""
    if not spent.exists():
        return time.perf_counter()
    return time.process_time() + int(spent.read_text().split()[0]) / 1e9


@pytest.mark.slow
@pytest.mark.parametrize("mode", BOUNDS)
@pytest.mark.django_db(transaction=True)
def test_context__of_twenty_thousand_messages_is_quick(
    memory_settings: Callable[..., None], mode: str
) -> None:
    memory_settings()
    thread = make_thread("ann", "t")
    fill(thread, MESSAGES)
    sql.execute(
        """UPDATE mastra_memory_message SET text = said, search = to_tsvector('english', said),
            content = jsonb_set(content, '{parts,0,text}', to_jsonb(said))
        FROM (SELECT id, 'We spoke of ' || (%s::text[])[1 + sequence %% 6] || ', ' || text AS said
            FROM mastra_memory_message) AS told
        WHERE told.id = mastra_memory_message.id""",
        [list(TOPICS)],
    )
    model = conf.app_settings().EMBEDDER
    sql.execute(
        """INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
        SELECT id, thread_id, resource_id, %s FROM mastra_memory_message""",
        [model],
    )
    while indexing.embed_batch(model)[0]:
        pass
    sql.execute("ANALYZE")
    index = VectorIndex.for_model(model, len(embedder.embed_query(model, ["x"]).vectors[0]))
    index.build()
    recall = {**OPTIONS["semanticRecall"], "mode": mode}
    memory = Memory(options={**OPTIONS, "semanticRecall": recall})
    memory.update_working_memory("t", "name: Ann")
    queries = [f"What did we say about {TOPICS[n % len(TOPICS)]} {n}?" for n in range(ROUNDS)]

    def ask(query: str) -> None:
        memory.context("t", resource_id="ann", new_messages=query)

    embedding = p95_of(lambda query: embedder.embed_query(model, [query]), queries)
    taken = p95_of(ask, queries)
    assert len(memory.context("t", new_messages=queries[0]).messages) > 20
    index.drop()
    assert taken < BOUNDS[mode] + embedding, f"{taken * 1000:.1f} ms"
