"""Load the conversations, each as one thread, and observe them with `local/extractive`."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.recall.locomo import Conversation
from mastra_memory.content import prompt_escaping, tokens, transcript
from mastra_memory.embedding import indexing
from mastra_memory.llm import TextRequest, generate
from mastra_memory.llm.text_models import Purpose
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import log as observation_log
from mastra_memory.types import StoredMessage

MESSAGE_TOKENS = 6_000
"""How many tokens of messages are observed at a time."""
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
    """Save, embed and observe the conversations."""
    memory = Memory(options={"semanticRecall": {"scope": "thread"}})
    for conversation in conversations:
        for thread_id, messages in conversation.threads.items():
            memory.create_thread(conversation.resource_id, thread_id=thread_id)
            memory.save_messages(messages)
    while indexing.embed_pending(seconds=60)[1]:
        pass
    return [_observe(memory, conversation) for conversation in conversations]


def _observe(memory: Memory, conversation: Conversation) -> ObservedThread:
    counter = tokens.get_token_counter()
    thread_id = conversation.resource_id
    page = memory.recall(thread_id, resource_id=conversation.resource_id, per_page=False)
    batches: list[list[StoredMessage]] = [[]]
    observed = batch_tokens = 0
    left = sum(counter.message(m.role, m.content) for m in page.messages)
    for message in page.messages:
        if left <= RAW_TOKENS:
            break
        cost = counter.message(message.role, message.content)
        if batch_tokens + cost > MESSAGE_TOKENS:
            batches.append([])
            batch_tokens = 0
        batches[-1].append(message)
        batch_tokens += cost
        observed += cost
        left -= cost
    log = ""
    for batch in batches:
        log = observation_log.append_observations(
            log, _ask_observer(batch, log), batch[-1].created_at
        )
    ObservationalRecord.objects.create(
        scope="thread",
        thread_id=thread_id,
        resource_id=conversation.resource_id,
        active_observations=log,
        observation_token_count=counter.text(log),
        last_observed_at=batches[-1][-1].created_at,
    )
    by_id = {message.id: message for message in page.messages}
    observed_ids = frozenset(message.id for batch in batches for message in batch)
    return ObservedThread(conversation, by_id, observed_ids, observed, log, counter.text(log))


def _ask_observer(messages: Sequence[StoredMessage], log: str) -> str:
    text = transcript.format_for_observer(messages)
    prompt = f"<new-messages>\n{text}\n</new-messages>"
    if log:
        prompt = f"{prompt_escaping.wrap_in_tag('previous-observations', log)}\n{prompt}"
    reply = generate(TextRequest(purpose=Purpose.OBSERVATION, instructions="", prompt=prompt))
    return reply.text.removeprefix("<observations>\n").removesuffix("\n</observations>")
