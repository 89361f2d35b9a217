"""Put the blocks of a context together."""

from collections.abc import Sequence

from mastra_memory import working_memory
from mastra_memory.content import message_text, tokens
from mastra_memory.context import rendering, thread_history
from mastra_memory.context.blocks import Block, BlockKind, Context
from mastra_memory.context.thread_history import ThreadState
from mastra_memory.db import times
from mastra_memory.models import ObservationalRecord, Scope
from mastra_memory.observational import generations
from mastra_memory.options import MemoryOptions
from mastra_memory.types import StoredMessage


def build_context(
    options: MemoryOptions,
    thread_id: str,
    *,
    resource_id: str | None = None,
    new_messages: Sequence[StoredMessage] = (),
) -> Context:
    """Return the context of a turn.

    Recalled messages of this thread are added to the history. Those of other threads are rendered
    as a block of text. Each message is included only once; a new message is in the block of new
    messages.

    Args:
        options: The agent's options.
        thread_id: The thread, which need not exist yet.
        resource_id: The owner of the thread.
        new_messages: Messages that are not stored yet. The last one of the user is the query for
            semantic recall.

    Raises:
        AccessDenied: The thread belongs to another resource.
    """
    thread = ThreadState.read(options, thread_id, resource_id)
    record = _find_record(options, thread)
    new_ids = [message.id for message in new_messages]
    history = thread_history.read_history(options, thread, record, new_ids)
    included_ids = {message.id for message in history} | set(new_ids)
    recalled = [
        message
        for message in thread_history.recall_messages(
            options, thread, get_search_query(new_messages)
        )
        if message.id not in included_ids
    ]
    same_thread = [message for message in recalled if message.thread_id == thread.thread_id]
    other_threads = [message for message in recalled if message.thread_id != thread.thread_id]
    history = sorted([*same_thread, *history], key=lambda message: message.sort_key)
    log = record.active_observations if record else ""
    blocks = [
        _build_text_block("working_memory", _render_working_memory(options, thread)),
        _build_text_block("observations", _render_observations(options, thread, record, log)),
        _build_text_block("remembered", rendering.render_other_conversations(other_threads)),
        _build_message_block("continuation", _list_continuation_messages(thread, log)),
        _build_message_block(
            "history", thread_history.merge_tool_calls(options, history, new_messages)
        ),
        _build_message_block("new", new_messages),
    ]
    return Context(
        thread_id=thread.thread_id,
        resource_id=thread.resource_id,
        blocks=tuple(block for block in blocks if block is not None),
        record=record,
    )


def _find_record(options: MemoryOptions, thread: ThreadState) -> ObservationalRecord | None:
    if options.observational_memory is None:
        return None
    scope = options.observational_memory.scope
    return generations.find_head(scope, thread_id=thread.thread_id, resource_id=thread.resource_id)


def _render_observations(
    options: MemoryOptions, thread: ThreadState, record: ObservationalRecord | None, log: str
) -> str:
    """Return the log with what belongs to it: hints, and messages of other conversations."""
    observational = options.observational_memory
    if observational is None:
        return ""
    timezone = times.get_timezone(record.observed_timezone if record else "")
    others = ""
    if record is not None and record.scope == Scope.RESOURCE and log.strip():
        others = rendering.render_other_threads(
            thread_history.list_unobserved_elsewhere(thread, observational), timezone=timezone
        )
    return rendering.render_observations(
        log,
        thread.observer_metadata,
        options=observational,
        timezone=timezone,
        other_conversations=others,
    )


def _list_continuation_messages(thread: ThreadState, log: str) -> list[StoredMessage]:
    """Return the message that stands for the messages that observations replaced, if there are."""
    if not log.strip():
        return []
    return [rendering.build_continuation_message(thread.thread_id, thread.resource_id)]


def _render_working_memory(options: MemoryOptions, thread: ThreadState) -> str:
    if not options.working_memory.enabled:
        return ""
    return working_memory.build_system_text(
        options.working_memory, thread.working_memory, read_only=options.read_only
    )


def _build_text_block(kind: BlockKind, text: str) -> Block | None:
    if not text:
        return None
    return Block(kind, text=text, tokens=tokens.get_token_counter().text(text))


def _build_message_block(kind: BlockKind, messages: Sequence[StoredMessage]) -> Block | None:
    if not messages:
        return None
    counter = tokens.get_token_counter()
    counts = [counter.message(message.role, message.content) for message in messages]
    return Block(kind, messages=tuple(messages), tokens=sum(counts))


def get_search_query(new_messages: Sequence[StoredMessage]) -> str:
    """Return the text of the last message of the user, the query for semantic recall."""
    for message in reversed(new_messages):
        if message.role == "user":
            return message_text.get_text(message.content).strip()
    return ""
