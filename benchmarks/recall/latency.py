"""How long a recall takes, and what an index finds of what is there."""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median, quantiles
from typing import Any

from benchmarks.recall import talk
from mastra_memory import conf
from mastra_memory.embedding import embedder
from mastra_memory.memory import Memory
from mastra_memory.search import meaning
from mastra_memory.search.meaning import Meaning
from mastra_memory.search.scope import SearchScope

WARM_UP, ROUNDS = 20, 200
RECALL: Mapping[str, Any] = {"semanticRecall": {"topK": 4, "messageRange": 1}}
MODES = ("vector", "hybrid")
HITS: Mapping[str, Any] = {"semanticRecall": {"topK": 4, "messageRange": 0}}

Figures = dict[str, float]


def of_recall(resources: Sequence[str], *, mode: str = "vector") -> Figures:
    """Milliseconds of a recall in these resources in turn, the query's embedding included."""
    memory = Memory(options={"semanticRecall": {**RECALL["semanticRecall"], "mode": mode}})

    def recall(number: int) -> None:
        resource = resources[number % len(resources)]
        memory.recall(
            f"{resource}-0", resource_id=resource, vector_search_string=talk.question(number)
        )

    return _timed(recall)


def of_context(resource: str, *, mode: str) -> Figures:
    """Milliseconds of a context of the resource's first thread, and of the query's embedding."""
    recall = {**RECALL["semanticRecall"], "mode": mode}
    options = {"lastMessages": 20, "workingMemory": {"enabled": True}, "semanticRecall": recall}
    memory = Memory(options=options)
    thread = f"{resource}-0"
    memory.update_working_memory(thread, "name: Ann", resource_id=resource)
    model = conf.app_settings().EMBEDDER

    def build(number: int) -> None:
        memory.context(thread, resource_id=resource, new_messages=talk.question(number))

    def embed(number: int) -> None:
        embedder.embed_query(model, [talk.question(-1 - number)])

    return {**_timed(build), "embedding": _timed(embed)["p95"]}


def of_search(resources: Sequence[str], kind: Any) -> Figures:
    """Milliseconds of a search with snippets and neighbours."""
    memory = Memory(options=RECALL)

    def search(number: int) -> None:
        resource = resources[number % len(resources)]
        memory.search(talk.question(number), resource_id=resource, search_type=kind, limit=10)

    return _timed(search)


def _timed(act: Callable[[int], None]) -> Figures:
    for number in range(WARM_UP):
        act(number)
    taken = []
    for number in range(WARM_UP, WARM_UP + ROUNDS):
        start = time.perf_counter()
        act(number)
        taken.append((time.perf_counter() - start) * 1000)
    return {"p50": round(median(taken), 2), "p95": round(quantiles(taken, n=20)[-1], 2)}


def hits(resources: Sequence[str]) -> list[int]:
    """How many messages each recall finds, neighbours and history apart."""
    memory = Memory(options=HITS)
    found = []
    for number in range(ROUNDS):
        resource = resources[number % len(resources)]
        page = memory.recall(
            f"{resource}-0",
            resource_id=resource,
            per_page=0,
            vector_search_string=talk.question(number),
        )
        found.append(len(page.messages))
    return found


def filtered_recall(resources: Sequence[str], *, limit: int = 10) -> float:
    """The share of the true nearest that the index finds when it is forced, mean of many."""
    model = conf.app_settings().EMBEDDER
    shares = []
    for number in range(ROUNDS // 2):
        made = embedder.embed_query(model, [talk.question(number)])
        scope = SearchScope(resource_id=resources[number % len(resources)])
        wanted = Meaning(model=model, vectors=made.vectors, scope=scope)
        exact, indexed = (
            {hit.id for hit in meaning.find_by_meaning(wanted, limit=limit, use_index=use)}
            for use in (False, True)
        )
        shares.append(len(exact & indexed) / len(exact))
    return round(mean(shares), 4)
