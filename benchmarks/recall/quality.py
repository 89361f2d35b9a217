"""How much of the evidence for a question is among the first results, by kind of search."""

import time
from collections.abc import Sequence
from statistics import mean, median, quantiles
from typing import Any

from benchmarks.recall.locomo import Conversation
from mastra_memory.embedding import indexing, inventory
from mastra_memory.memory import Memory
from tests import servers

KINDS = {"text": "text", "vector": "semantic", "hybrid": "hybrid"}
FIRST = (1, 5, 10)
OPTIONS = {"semanticRecall": {"scope": "resource"}}


def load(conversations: Sequence[Conversation]) -> None:
    """Save and embed the conversations."""
    memory = Memory(options=OPTIONS)
    for talk in conversations:
        for thread_id, messages in talk.threads.items():
            memory.create_thread(talk.resource_id, thread_id=thread_id)
            memory.save_messages(messages)
    while indexing.embed_pending(seconds=60)[1]:
        pass
    for left in inventory.backlog():
        raise servers.ServerError(f"{left.model} embedded not all of it: {left.last_error}")


def measure(conversations: Sequence[Conversation]) -> dict[str, dict[str, float]]:
    """Recall, mean reciprocal rank and milliseconds of each kind of search."""
    return {name: _measure(conversations, kind) for name, kind in KINDS.items()}


def _measure(conversations: Sequence[Conversation], kind: Any) -> dict[str, float]:
    memory = Memory(options=OPTIONS)
    recalls: dict[int, list[float]] = {first: [] for first in FIRST}
    ranks: list[float] = []
    taken: list[float] = []
    for talk in conversations:
        for question in talk.questions:
            start = time.perf_counter()
            found = memory.search(
                question.text, resource_id=talk.resource_id, search_type=kind, limit=max(FIRST)
            )
            taken.append((time.perf_counter() - start) * 1000)
            ids = [hit.id for hit in found.results]
            for first in FIRST:
                recalls[first].append(
                    len(question.evidence & set(ids[:first])) / len(question.evidence)
                )
            places = [place for place, key in enumerate(ids, 1) if key in question.evidence]
            ranks.append(1 / places[0] if places else 0.0)
    return {
        **{f"recall@{first}": mean(values) for first, values in recalls.items()},
        "mrr": mean(ranks),
        "p50_ms": median(taken),
        "p95_ms": quantiles(taken, n=20)[-1],
    }
