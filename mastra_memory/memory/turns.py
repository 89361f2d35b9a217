"""The verbs of an agent's turn: what to show the model, and keeping what came of it."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from mastra_memory import conf, context, threads
from mastra_memory.context import Context, turn_tool_calls, turns
from mastra_memory.context.turns import MessageInput, MessageRow, Turn
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.llm import summaries
from mastra_memory.llm.summaries import Summary
from mastra_memory.memory.base import OptionOverrides, make_async
from mastra_memory.memory.saving import MessageSaving
from mastra_memory.recall import recent
from mastra_memory.types import StoredMessage

SUMMARY_PAGE_SIZE = 100

MessagesInput = MessageInput | Iterable[MessageInput]
"""One message or several: texts, messages in any of Mastra's forms, or messages as read."""


class TurnMethods(MessageSaving):
    """What an agent needs each turn."""

    def context(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        new_messages: MessagesInput = (),
        options: OptionOverrides | None = None,
    ) -> Context:
        """What to put in front of the model: frozen blocks in a fixed order, counted.

        Working memory, observations and what was recalled from other conversations as text that
        cannot leave its fence; then the history, then `new_messages`, no message twice. The thread
        need not exist yet. Raises `AccessDenied` for a thread of another resource.
        """
        rows = turns.build_rows(
            new_messages, thread_id=thread_id, resource_id=resource_id or thread_id
        )
        return self._context(thread_id, resource_id, rows, options)

    def _context(
        self,
        thread_id: str,
        resource_id: str | None,
        rows: list[MessageRow],
        options: OptionOverrides | None,
    ) -> Context:
        return context.build_context(
            self.options.merged(options),
            thread_id,
            resource_id=resource_id,
            new_messages=turns.preview_messages(rows),
        )

    def save_turn(
        self,
        thread_id: str,
        messages: MessagesInput,
        *,
        resource_id: str | None = None,
        answer: Callable[[Context], MessagesInput] | MessagesInput | None = None,
        turn_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> Turn:
        """Keep what the user said, ask for the answer, keep that.

        What the user said is committed before `answer`, which gets the context, is called; if it
        raises, that much is kept, once. A missing thread is made. Saving the same turn again (the
        same message id or `turn_id`) stores nothing twice; once its answer is there, that comes
        back and nobody is asked. Raises `RuntimeError` inside a transaction, which could undo
        what this promises to keep; nothing is stored then.
        """
        turn = self._begin_turn(
            thread_id, messages, resource_id, turn_id, options, durable=answer is not None
        )
        if answer is None or turn.repeated:
            return turn
        given = answer(turn.context) if callable(answer) else answer
        return self._end_turn(turn, given)

    async def asave_turn(
        self,
        thread_id: str,
        messages: MessagesInput,
        *,
        resource_id: str | None = None,
        answer: Callable[[Context], Awaitable[MessagesInput]],
        turn_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> Turn:
        """The same where `answer` is awaited; no thread is held meanwhile."""
        begin = sync_to_async(self._begin_turn)
        turn = await begin(thread_id, messages, resource_id, turn_id, options, durable=True)
        if turn.repeated:
            return turn
        given = await answer(turn.context)
        return await sync_to_async(self._end_turn)(turn, given)

    def _begin_turn(
        self,
        thread_id: str,
        messages: MessagesInput,
        resource_id: str | None,
        turn_id: str | None,
        options: OptionOverrides | None,
        *,
        durable: bool,
    ) -> Turn:
        """Commit what the user said; with the answer, where it was given before."""
        if durable:
            _check_not_in_transaction()
        owner = resource_id or thread_id
        if not self.options.read_only:
            owner = self._ensure_thread(thread_id, resource_id).resource_id
        rows = turns.build_rows(messages, thread_id=thread_id, resource_id=owner, name=turn_id)
        name = turns.make_answer_key([row["id"] for row in rows], turn_id)
        answered = turns.find_answer(thread_id, name)
        shown = self._context(thread_id, resource_id, rows, options)
        kept = self._keep(thread_id, rows, durable=durable)
        return Turn(shown, kept, answered, repeated=bool(answered), name=name)

    def _end_turn(self, turn: Turn, given: MessagesInput) -> Turn:
        shown = turn.context
        rows = turns.build_rows(
            given,
            thread_id=shown.thread_id,
            resource_id=shown.resource_id,
            role="assistant",
            name=turn.name,
        )
        return replace(turn, answer=self._keep(shown.thread_id, rows, durable=True))

    @retry_conflicts
    def _keep(
        self, thread_id: str, rows: list[MessageRow], *, durable: bool
    ) -> Sequence[StoredMessage]:
        if self.options.read_only:
            return turns.preview_messages(rows)
        with transaction.atomic(durable=durable):
            return self._save(
                turn_tool_calls.reconcile_tool_calls(thread_id, rows), strip=True
            ).messages

    def summarize_thread(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        last_messages: int | None = None,
        max_input_tokens: int = summaries.MAX_INPUT_TOKENS,
        **choices: Any,
    ) -> Summary:
        """Notes on a thread, read from its end as far as fits; see `summaries.summarize`.

        Raises `ThreadNotFound`, `AccessDenied`, `ProviderUnavailable` and `ProviderRefused`.
        """
        thread = threads.get_thread(thread_id, resource_id=resource_id)
        found = islice(recent.iterate_newest(thread.id, page_size=SUMMARY_PAGE_SIZE), last_messages)
        told = summaries.fitting(found, max_input_tokens)
        return summaries.summarize(told, thread_id=thread.id, **choices)

    def summarize_conversation(
        self,
        messages: MessagesInput,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        **choices: Any,
    ) -> Summary:
        """Notes on these messages, which are neither read from anywhere nor stored."""
        nowhere = thread_id or resource_id or "conversation"
        rows = turns.build_rows(
            messages,
            thread_id=nowhere,
            resource_id=resource_id or nowhere,
            limit=conf.app_settings().MAX_MESSAGES_PER_SAVE,
        )
        return summaries.summarize(
            turns.preview_messages(rows), thread_id=thread_id, resource_id=resource_id, **choices
        )

    acontext = make_async(context)
    asummarize_thread = make_async(summarize_thread)
    asummarize_conversation = make_async(summarize_conversation)


def _check_not_in_transaction() -> None:
    try:
        with transaction.atomic(durable=True):
            pass
    except RuntimeError:
        raise RuntimeError(
            "save_turn with an answer commits what was said before it asks. Call it outside of"
            " transaction.atomic() and of ATOMIC_REQUESTS (@transaction.non_atomic_requests)."
        ) from None
