"""Find the messages that wait for observation, and request work on them."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from mastra_memory.db import sql
from mastra_memory.observational import backlog_queries, claims, generations
from mastra_memory.observational.keys import RecordKey
from mastra_memory.options import ObservationalMemoryOptions

INSTRUCTION_TOKENS = 1_500
"""About how long the Observer's instructions are."""
OUTPUT_RATIO = 0.15
"""About how many tokens the Observer writes for each token that it reads."""
PAGE_SIZE = 500


def request(key: RecordKey, *, agent_id: str | None) -> str:
    """Request a cycle of work on a thread or resource, and return the id of its record."""
    record = generations.get_or_create_live(key, agent_id=agent_id)
    return claims.request_work(key, agent_id) or record.pk


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogEntry:
    """Unobserved messages of a thread or resource."""

    key: RecordKey
    messages: int
    tokens: int
    """An estimate: messages that were never counted are counted by their size."""


@dataclass(slots=True, kw_only=True)
class BacklogEstimate:
    """What it would take to observe a backlog."""

    records: int = 0
    messages: int = 0
    tokens: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, entry: BacklogEntry, options: ObservationalMemoryOptions) -> None:
        """Add the messages of one thread or resource."""
        observation = options.observation
        batch = max(observation.message_tokens, observation.max_tokens_per_batch)
        calls = max(1, ceil(entry.tokens / batch))
        previous = observation.previous_observer_tokens
        overhead = INSTRUCTION_TOKENS + (0 if previous is False else previous)
        self.records += 1
        self.messages += entry.messages
        self.tokens += entry.tokens
        self.calls += calls
        self.input_tokens += entry.tokens + calls * overhead
        self.output_tokens += ceil(entry.tokens * OUTPUT_RATIO)


def list_backlog(
    options: ObservationalMemoryOptions,
    *,
    thread_id: str | None = None,
    resource_id: str | None = None,
) -> Iterator[BacklogEntry]:
    """Yield all threads or resources with unobserved messages, in the order of their ids.

    Args:
        options: The options of the agent.
        thread_id: Only this thread.
        resource_id: Only this resource.
    """
    in_threads = options.scope == "thread"
    statement = (
        backlog_queries.BACKLOG_OF_THREADS if in_threads else backlog_queries.BACKLOG_OF_RESOURCES
    )
    filters = [thread_id, thread_id, resource_id, resource_id]
    last_id = ""
    while rows := sql.fetch_all(statement, [options.scope, last_id, *filters, PAGE_SIZE]):
        for subject_id, owner, messages, tokens in rows:
            if messages:
                key = (
                    RecordKey.about_thread(subject_id, owner)
                    if in_threads
                    else RecordKey.about_resource(owner)
                )
                yield BacklogEntry(key=key, messages=messages, tokens=tokens)
        last_id = rows[-1][0]
