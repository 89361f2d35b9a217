"""Measure how long recall and search take, and how much of it the vector index finds."""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median, quantiles
from typing import Any

from benchmarks.recall import corpus
from mastra_memory import conf
from mastra_memory.embedding import embedder
from mastra_memory.memory import Memory
from mastra_memory.search import vector
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.vector import VectorQuery

WARM_UP_CALLS, MEASURED_CALLS = 20, 200
RECALL: Mapping[str, Any] = {"semanticRecall": {"topK": 4, "messageRange": 1}}
RECALL_WITHOUT_NEIGHBOURS: Mapping[str, Any] = {"semanticRecall": {"topK": 4, "messageRange": 0}}
MODES = ("vector", "hybrid")

Figures = dict[str, float]


def measure_recall(resources: Sequence[str], *, mode: str = "vector") -> Figures:
    """Return the milliseconds of a recall, embedding of the query included.

    Calls go through the resources in turn.
    """
    memory = Memory(options={"semanticRecall": {**RECALL["semanticRecall"], "mode": mode}})

    def recall(number: int) -> None:
        resource = resources[number % len(resources)]
        memory.recall(
            f"{resource}-0",
            resource_id=resource,
            vector_search_string=corpus.generate_question(number),
        )

    return _measure_calls(recall)


def measure_context(resource: str, *, mode: str) -> Figures:
    """Return the milliseconds of a context and, of these, those of embedding the query.

    The context is that of the resource's first thread.
    """
    recall = {**RECALL["semanticRecall"], "mode": mode}
    options = {"lastMessages": 20, "workingMemory": {"enabled": True}, "semanticRecall": recall}
    memory = Memory(options=options)
    thread_id = f"{resource}-0"
    memory.update_working_memory(thread_id, "name: Ann", resource_id=resource)
    model = conf.app_settings().EMBEDDER

    def build_context(number: int) -> None:
        question = corpus.generate_question(number)
        memory.context(thread_id, resource_id=resource, new_messages=question)

    def embed(number: int) -> None:
        embedder.embed_query(model, [corpus.generate_question(-1 - number)])

    return {**_measure_calls(build_context), "embedding": _measure_calls(embed)["p95"]}


def measure_search(resources: Sequence[str], search_type: Any) -> Figures:
    """Return the milliseconds of a search with snippets and neighbouring messages."""
    memory = Memory(options=RECALL)

    def search(number: int) -> None:
        memory.search(
            corpus.generate_question(number),
            resource_id=resources[number % len(resources)],
            search_type=search_type,
            limit=10,
        )

    return _measure_calls(search)


def _measure_calls(call: Callable[[int], None]) -> Figures:
    for number in range(WARM_UP_CALLS):
        call(number)
    milliseconds = []
    for number in range(WARM_UP_CALLS, WARM_UP_CALLS + MEASURED_CALLS):
        started = time.perf_counter()
        call(number)
        milliseconds.append((time.perf_counter() - started) * 1000)
    return summarize(milliseconds)


def summarize(milliseconds: Sequence[float]) -> Figures:
    """Return the median and the 95th percentile."""
    p95 = quantiles(milliseconds, n=20)[-1]
    return {"p50": round(median(milliseconds), 2), "p95": round(p95, 2)}


def count_matches(resources: Sequence[str]) -> list[int]:
    """Return the number of messages that each recall finds, without neighbours and history."""
    memory = Memory(options=RECALL_WITHOUT_NEIGHBOURS)
    counts = []
    for number in range(MEASURED_CALLS):
        resource = resources[number % len(resources)]
        page = memory.recall(
            f"{resource}-0",
            resource_id=resource,
            per_page=0,
            vector_search_string=corpus.generate_question(number),
        )
        counts.append(len(page.messages))
    return counts


def measure_index_recall(resources: Sequence[str], *, limit: int = 10) -> float:
    """Return the share of the true nearest vectors that the index finds within one resource.

    The index is forced, because the planner would rather scan so small a part of the table.
    """
    model = conf.app_settings().EMBEDDER
    shares = []
    for number in range(MEASURED_CALLS // 2):
        embedded = embedder.embed_query(model, [corpus.generate_question(number)])
        scope = SearchScope(resource_id=resources[number % len(resources)])
        query = VectorQuery(model=model, vectors=embedded.vectors, scope=scope)
        exact, indexed = (
            {
                match.id
                for match in vector.find_by_similarity(query, limit=limit, use_index=use_index)
            }
            for use_index in (False, True)
        )
        shares.append(len(exact & indexed) / len(exact))
    return round(mean(shares), 4)
