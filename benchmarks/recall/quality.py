"""Measure how much of the evidence for a question is among the first results of a search."""

import time
from collections.abc import Mapping, Sequence
from statistics import mean, median, quantiles
from typing import Any

from benchmarks.recall.locomo import Conversation
from mastra_memory.embedding import indexing, stats
from mastra_memory.memory import Memory
from mastra_memory.search.types import SearchType
from tests.support import servers

SEARCHES: Mapping[str, tuple[SearchType, Mapping[str, Any]]] = {
    "words": ("text", {}),
    "vectors": ("semantic", {}),
    "hybrid, without time": ("hybrid", {"enabled": False}),
    "hybrid": ("hybrid", {}),
}
"""The searches to measure: the type, and the options of expressions of time."""
HELD_OUT = "conv-44"
"""The conversation on which no weight of the ranking was chosen."""
CUTOFFS = (1, 5, 10)
OPTIONS = {"semanticRecall": {"scope": "resource"}}


def load(conversations: Sequence[Conversation]) -> None:
    """Save and embed the conversations.

    Raises:
        ServerError: The embedder failed, so the figures would be wrong.
    """
    memory = Memory(options=OPTIONS)
    for conversation in conversations:
        for thread_id, messages in conversation.threads.items():
            memory.create_thread(conversation.resource_id, thread_id=thread_id)
            memory.save_messages(messages)
    while indexing.embed_pending(seconds=60)[1]:
        pass
    for backlog in stats.list_backlogs():
        raise servers.ServerError(
            f"{backlog.model} did not embed every message: {backlog.last_error}"
        )


def measure(conversations: Sequence[Conversation]) -> dict[str, dict[str, float]]:
    """Return recall, mean reciprocal rank and milliseconds of each type of search."""
    figures = {
        name: _measure_search(conversations, search_type, time_options)
        for name, (search_type, time_options) in SEARCHES.items()
    }
    held_out = [item for item in conversations if item.resource_id == HELD_OUT]
    if held_out and len(conversations) > 1:
        others = [item for item in conversations if item.resource_id != HELD_OUT]
        figures["hybrid, tuned on"] = _measure_search(others, "hybrid", {})
        figures["hybrid, held out"] = _measure_search(held_out, "hybrid", {})
    return figures


def _measure_search(
    conversations: Sequence[Conversation], search_type: SearchType, time_options: Mapping[str, Any]
) -> dict[str, float]:
    recalls: dict[int, list[float]] = {cutoff: [] for cutoff in CUTOFFS}
    reciprocal_ranks: list[float] = []
    milliseconds: list[float] = []
    for conversation in conversations:
        time_of_question = {"now": conversation.asked_at, "timeZone": "UTC", **time_options}
        memory = Memory(options={"semanticRecall": {"time": time_of_question}})
        for question in conversation.questions:
            started = time.perf_counter()
            search = memory.search(
                question.text,
                resource_id=conversation.resource_id,
                search_type=search_type,
                limit=max(CUTOFFS),
            )
            milliseconds.append((time.perf_counter() - started) * 1000)
            ids = [result.id for result in search.results]
            for cutoff in CUTOFFS:
                evidence_found = question.evidence & set(ids[:cutoff])
                recalls[cutoff].append(len(evidence_found) / len(question.evidence))
            ranks = [rank for rank, id_ in enumerate(ids, 1) if id_ in question.evidence]
            reciprocal_ranks.append(1 / ranks[0] if ranks else 0.0)
    return {
        **{f"recall@{cutoff}": mean(values) for cutoff, values in recalls.items()},
        "mrr": mean(reciprocal_ranks),
        "p50_ms": median(milliseconds),
        "p95_ms": quantiles(milliseconds, n=20)[-1],
    }
