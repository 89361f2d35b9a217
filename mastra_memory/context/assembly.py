"""Put the blocks of a context together."""

from collections.abc import Callable, Iterator, Sequence

from mastra_memory import working_memory
from mastra_memory.content import message_text, tokens
from mastra_memory.context import budget, rendering, thread_history
from mastra_memory.context.blocks import Block, BlockKind, Context
from mastra_memory.context.budget import ContextParts
from mastra_memory.context.log_selection import LogQuery
from mastra_memory.context.thread_history import Recalled, ThreadState
from mastra_memory.context.token_counts import MessageCounter
from mastra_memory.db import times
from mastra_memory.models import ObservationalRecord, Scope
from mastra_memory.observational import generations
from mastra_memory.options import MemoryOptions, SemanticRecallOptions
from mastra_memory.types import StoredMessage

LOG_MATCHES = 200
"""How many matches of semantic recall help to choose observations if the log does not fit."""

MAX_UNOBSERVED_SHARE = 0.25
"""The share of a limited context that unobserved messages of other conversations may take. If they
need more, they are left out."""


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
    messages. With the option `max_context_tokens`, only the most useful parts are included.

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
    fixed = [
        _build_text_block("working_memory", _render_working_memory(options, thread)),
        _build_message_block("new", new_messages),
    ]
    render_log = _make_log_renderer(options, thread, record)
    parts = _collect_parts(options, thread, record, new_messages, fixed, render_log)
    blocks = [
        fixed[0],
        _build_text_block("observations", render_log(parts.log)),
        *_build_message_blocks(options, thread, parts, new_messages),
    ]
    return Context(
        thread_id=thread.thread_id,
        resource_id=thread.resource_id,
        blocks=tuple(block for block in blocks if block is not None),
        record=record,
    )


def _build_message_blocks(
    options: MemoryOptions,
    thread: ThreadState,
    parts: ContextParts,
    new_messages: Sequence[StoredMessage],
) -> list[Block | None]:
    """Return the blocks of other threads' messages, continuation, history and new messages."""
    recalled = sorted(parts.recalled, key=lambda message: message.sort_key)
    same_thread = [message for message in recalled if message.thread_id == thread.thread_id]
    other_threads = [message for message in recalled if message.thread_id != thread.thread_id]
    unique = {message.id: message for message in [*same_thread, *parts.history]}
    ordered = sorted(unique.values(), key=lambda message: message.sort_key)
    history, new = thread_history.merge_tool_calls(options, ordered, new_messages)
    return [
        _build_text_block("remembered", rendering.render_other_conversations(other_threads)),
        _build_message_block("continuation", _list_continuation_messages(thread, parts.log)),
        _build_message_block("history", history, parts.counter),
        _build_message_block("new", new),
    ]


def _collect_parts(
    options: MemoryOptions,
    thread: ThreadState,
    record: ObservationalRecord | None,
    new_messages: Sequence[StoredMessage],
    fixed: Sequence[Block | None],
    render_log: Callable[[str], str],
) -> ContextParts:
    """Return the history, the recalled messages and the log, within the option's limit.

    The tokens of the `fixed` blocks count, but these blocks are always included.
    """
    max_tokens = options.max_context_tokens
    query = get_search_query(new_messages)
    new_ids = {message.id for message in new_messages}
    history = thread_history.read_history(options, thread, record, new_messages)
    recalled = thread_history.recall_messages(
        options, thread, query, min_matches=LOG_MATCHES if max_tokens and record else 0
    )
    # With a limit, messages may be dropped from the history and still be recalled.
    excluded = new_ids | ({message.id for message in history} if max_tokens is None else set())
    best_first = _iter_best_first(recalled, options.semantic_recall)
    log = record.active_observations if record else ""
    parts = ContextParts(
        thread_id=thread.thread_id,
        history=history,
        recalled=[message for message in best_first if message.id not in excluded],
        log=log,
        counter=thread_history.read_token_counts(thread, record, history),
    )
    if max_tokens is None:
        return parts
    timezone = times.get_timezone(record.observed_timezone if record else "")
    continuation = _list_continuation_messages(thread, log)
    blocks = [*fixed, _build_message_block("continuation", continuation)]
    return budget.fit_parts(
        parts,
        max_tokens - tokens.TOKENS_PER_LIST - sum(block.tokens for block in blocks if block),
        render=render_log,
        query=lambda included: LogQuery(
            text=query, scored=recalled.scored, included=included, timezone=timezone
        ),
    )


def _iter_best_first(
    recalled: Recalled, options: SemanticRecallOptions | None
) -> Iterator[StoredMessage]:
    """Yield the recalled messages, each match followed by its neighbours."""
    messages = list(recalled.messages)
    positions = {message.id: position for position, message in enumerate(messages)}
    before, after = (options.before, options.after) if options else (0, 0)
    remaining = dict.fromkeys(positions)
    for match in recalled.scored:
        position = positions.get(match.id)
        if position is None:
            continue
        window = range(max(position - before, 0), min(position + after + 1, len(messages)))
        for index in (position, *window):
            message = messages[index]
            if message.thread_id == messages[position].thread_id and message.id in remaining:
                del remaining[message.id]
                yield message
    yield from (messages[positions[message_id]] for message_id in remaining)


def _find_record(options: MemoryOptions, thread: ThreadState) -> ObservationalRecord | None:
    if options.observational_memory is None:
        return None
    scope = options.observational_memory.scope
    return generations.find_live_in_scope(
        scope, thread_id=thread.thread_id, resource_id=thread.resource_id
    )


def _make_log_renderer(
    options: MemoryOptions, thread: ThreadState, record: ObservationalRecord | None
) -> Callable[[str], str]:
    """Return a function that returns a log with its hints and messages of other conversations."""
    observational = options.observational_memory
    if observational is None:
        return lambda log: ""
    timezone = times.get_timezone(record.observed_timezone if record else "")
    others = ""
    if record and record.scope == Scope.RESOURCE and record.active_observations.strip():
        others = rendering.render_other_threads(
            thread_history.list_unobserved_elsewhere(thread, observational), timezone=timezone
        )
        limit = options.max_context_tokens
        if (
            limit is not None
            and tokens.get_token_counter().text(others) > limit * MAX_UNOBSERVED_SHARE
        ):
            others = ""

    def render(log: str) -> str:
        return rendering.render_observations(
            log,
            thread.observer_metadata,
            options=observational,
            timezone=timezone,
            other_conversations=others if log.strip() else "",
        )

    return render


def _list_continuation_messages(thread: ThreadState, log: str) -> list[StoredMessage]:
    """Return the message that takes the place of the observed messages, if the log has text."""
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


def _build_message_block(
    kind: BlockKind, messages: Sequence[StoredMessage], counter: MessageCounter | None = None
) -> Block | None:
    if not messages:
        return None
    counter = counter or MessageCounter()
    return Block(kind, messages=tuple(messages), tokens=sum(map(counter.count, messages)))


def get_search_query(new_messages: Sequence[StoredMessage]) -> str:
    """Return the text of the last message of the user, the query for semantic recall."""
    for message in reversed(new_messages):
        if message.role == "user":
            return message_text.get_text(message.content).strip()
    return ""
