"""What goes in front of a model: blocks in a fixed order, without doubles, fenced and counted."""

from collections.abc import Sequence

from mastra_memory import working_memory
from mastra_memory.content import message_text, tokens
from mastra_memory.context import rendering, thread_history
from mastra_memory.context.blocks import Block, BlockKind, Context
from mastra_memory.context.thread_history import ThreadState
from mastra_memory.models import ObservationalRecord
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
    """Put a context together.

    Of the messages recalled by meaning, those of this thread join the history, the others become
    a block of text. A message that is there twice is shown once, a new one among the new ones.
    The thread need not exist yet. Raises `AccessDenied` for a thread of another resource.
    """
    head = ThreadState.read(options, thread_id, resource_id)
    record = _record(options, head)
    new_ids = [message.id for message in new_messages]
    history = thread_history.read_history(options, head, record, new_ids)
    known = {message.id for message in history} | set(new_ids)
    recalled = thread_history.recall_messages(options, head, get_search_query(new_messages))
    found = [message for message in recalled if message.id not in known]
    own = [message for message in found if message.thread_id == head.thread_id]
    others = [message for message in found if message.thread_id != head.thread_id]
    shown = sorted([*own, *history], key=lambda message: message.sort_key)
    log = record.active_observations if record else ""
    blocks = [
        _text_block("working_memory", _working_memory(options, head)),
        _text_block("observations", rendering.render_observations(log, head.observed)),
        _text_block("remembered", rendering.render_other_conversations(others)),
        _message_block("history", thread_history.merge_tool_calls(options, shown, new_messages)),
        _message_block("new", new_messages),
    ]
    return Context(
        thread_id=head.thread_id,
        resource_id=head.resource_id,
        blocks=tuple(block for block in blocks if block is not None),
        record=record,
    )


def _record(options: MemoryOptions, head: ThreadState) -> ObservationalRecord | None:
    if options.observational_memory is None:
        return None
    scope = options.observational_memory.scope
    return generations.find_head(scope, thread_id=head.thread_id, resource_id=head.resource_id)


def _working_memory(options: MemoryOptions, head: ThreadState) -> str:
    if not options.working_memory.enabled:
        return ""
    return working_memory.build_system_text(
        options.working_memory, head.working_memory, read_only=options.read_only
    )


def _text_block(kind: BlockKind, text: str) -> Block | None:
    return Block(kind, text=text, tokens=tokens.get_token_counter().text(text)) if text else None


def _message_block(kind: BlockKind, messages: Sequence[StoredMessage]) -> Block | None:
    used = tokens.get_token_counter()
    counts = [used.message(message.role, message.content) for message in messages]
    return Block(kind, messages=tuple(messages), tokens=sum(counts)) if messages else None


def get_search_query(new_messages: Sequence[StoredMessage]) -> str:
    """What is searched for: the text of the last message of a user."""
    said = [message for message in new_messages if message.role == "user"]
    return message_text.get_text(said[-1].content).strip() if said else ""
