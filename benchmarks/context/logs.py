"""Load the conversations, each as one thread, and observe them with `local/extractive`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.recall.locomo import Conversation
from mastra_memory.content import tokens
from mastra_memory.embedding import indexing
from mastra_memory.memory import Memory, maintenance
from mastra_memory.types import StoredMessage

OPTIONS = {
    "semanticRecall": {"scope": "thread"},
    "observationalMemory": {"observation": {"bufferTokens": False}},
}
MESSAGE_TOKENS = 6_000
"""How many tokens of messages are observed at a time."""
TOKENS_PER_MESSAGE = 5
RAW_TOKENS = 1_000
"""About how many tokens of the newest messages are not observed, as in a conversation."""


@dataclass(frozen=True, slots=True)
class ObservedThread:
    """A thread with its log."""

    conversation: Conversation
    messages: dict[str, StoredMessage]
    observed_ids: frozenset[str]
    observed_tokens: int
    log: str
    log_tokens: int


def load(conversations: Sequence[Conversation]) -> list[ObservedThread]:
    """Save, observe, embed and index the conversations, as workers do."""
    memory = Memory(options=OPTIONS)
    threads = [_save_and_observe(memory, conversation) for conversation in conversations]
    while indexing.embed_pending(seconds=60)[1]:
        pass
    maintenance.write_pending_words()
    return threads


def _save_and_observe(memory: Memory, conversation: Conversation) -> ObservedThread:
    counter = tokens.get_token_counter()
    thread_id = resource_id = conversation.resource_id
    (rows,) = conversation.threads.values()
    memory.create_thread(resource_id, thread_id=thread_id)
    batches = list(_split_into_batches(rows))
    observed: list[StoredMessage] = []
    for batch in batches[:-1]:
        observed += memory.save_messages(batch).messages
        memory.observe(thread_id=thread_id, resource_id=resource_id)
    raw = memory.save_messages(batches[-1]).messages
    log = memory.get_observations(thread_id=thread_id, resource_id=resource_id) or ""
    return ObservedThread(
        conversation,
        messages={message.id: message for message in [*observed, *raw]},
        observed_ids=frozenset(message.id for message in observed),
        observed_tokens=sum(counter.message(m.role, m.content) for m in observed),
        log=log,
        log_tokens=counter.text(log),
    )


def _split_into_batches(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield messages to observe together. The last batch is what is not observed."""
    counter = tokens.get_token_counter()
    costs = [counter.text(row["content"]) + TOKENS_PER_MESSAGE for row in rows]
    left = sum(costs)
    batch: list[dict[str, Any]] = []
    batch_tokens = 0
    for row, cost in zip(rows, costs, strict=True):
        if batch and (batch_tokens + cost > MESSAGE_TOKENS or left <= RAW_TOKENS < left + cost):
            yield batch
            batch, batch_tokens = [], 0
        batch.append(row)
        batch_tokens += cost
        left -= cost
    yield batch
