"""Methods for one turn of an agent: build the context, save the turn, summarize."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from asgiref.sync import sync_to_async

from mastra_memory import conf, context, threads
from mastra_memory.context import Context, turn_tool_calls, turns
from mastra_memory.context.turns import MessageInput, MessageRow, Turn
from mastra_memory.db import routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.llm import summaries
from mastra_memory.llm.summaries import ConversationSummary
from mastra_memory.memory.base import OptionOverrides, make_async
from mastra_memory.memory.saving import MessageSaving
from mastra_memory.recall import recent
from mastra_memory.types import StoredMessage

SUMMARY_PAGE_SIZE = 100

OneOrMoreMessages = MessageInput | Iterable[MessageInput]
"""One message or several: texts, messages in any of Mastra's formats, or `StoredMessage`."""

ExtractionSchema = type[object] | Mapping[str, object]
"""A pydantic model, or a JSON schema."""


class TurnMethods(MessageSaving):
    """Build the context of a turn, and save the turn."""

    def context(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        new_messages: OneOrMoreMessages = (),
        options: OptionOverrides | None = None,
    ) -> Context:
        """Return what the model should read before it answers.

        The context has blocks in a fixed order, each with an estimate of its tokens: working
        memory, observations and messages recalled from other conversations as text for the
        system prompt; then the history and the new messages. No message occurs twice. Stored
        text is escaped so that it cannot end its block of the prompt.

        Args:
            thread_id: The thread, which need not exist yet.
            resource_id: The owner of the thread.
            new_messages: Messages that are not stored yet. A plain string is a message of the user.
            options: Options for this call.

        Raises:
            AccessDenied: The thread belongs to another resource.
            InvalidInput: A message is invalid, or there are too many.
        """
        rows = turns.build_rows(
            new_messages, thread_id=thread_id, resource_id=resource_id or thread_id
        )
        return self._build_context(thread_id, resource_id, rows, options)

    def _build_context(
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
        messages: OneOrMoreMessages,
        *,
        resource_id: str | None = None,
        answer: Callable[[Context], OneOrMoreMessages] | OneOrMoreMessages | None = None,
        turn_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> Turn:
        """Save the user's messages, call `answer` with the context, and save its result.

        The user's messages are committed before `answer` is called, so they are kept if it
        raises. A turn can be saved again, with the same message ids or the same `turn_id`:
        nothing is stored twice, and if the turn has an answer, the stored one is returned and
        `answer` is not called.

        Args:
            thread_id: The thread. It is created if it is missing.
            messages: The user's messages, or results of tools.
            resource_id: The owner of the thread; `thread_id` for a new thread by default.
            answer: A function that calls the model and returns its messages, or the messages
                themselves. None saves only the user's messages. A plain string is a message
                of the assistant.
            turn_id: Identifies the turn if its messages have no ids.
            options: Options for the context.

        Returns:
            The context and the stored messages.

        Raises:
            AccessDenied: The thread belongs to another resource.
            InvalidInput: A message is invalid, or there are too many.
            RuntimeError: Called with `answer` inside a transaction, which could roll back the
                user's messages. Nothing is stored.
        """
        turn = self._begin_turn(
            thread_id, messages, resource_id, turn_id, options, durable=answer is not None
        )
        if answer is None or turn.repeated:
            return turn
        answer_messages = answer(turn.context) if callable(answer) else answer
        return self._end_turn(turn, answer_messages)

    async def asave_turn(
        self,
        thread_id: str,
        messages: OneOrMoreMessages,
        *,
        resource_id: str | None = None,
        answer: Callable[[Context], Awaitable[OneOrMoreMessages]],
        turn_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> Turn:
        """Save a turn as `save_turn` does, and await `answer`.

        No thread and no database connection is occupied while the model answers.
        """
        begin = sync_to_async(self._begin_turn)
        turn = await begin(thread_id, messages, resource_id, turn_id, options, durable=True)
        if turn.repeated:
            return turn
        answer_messages = await answer(turn.context)
        return await sync_to_async(self._end_turn)(turn, answer_messages)

    def _begin_turn(
        self,
        thread_id: str,
        messages: OneOrMoreMessages,
        resource_id: str | None,
        turn_id: str | None,
        options: OptionOverrides | None,
        *,
        durable: bool,
    ) -> Turn:
        """Commit the user's messages, and look for an answer that is stored already."""
        if durable:
            _check_not_in_transaction()
        owner = resource_id or thread_id
        if not self.options.read_only:
            owner = self._get_or_create_thread(thread_id, resource_id).resource_id
        rows = turns.build_rows(messages, thread_id=thread_id, resource_id=owner, key=turn_id)
        answer_key = turns.make_answer_key([row["id"] for row in rows], turn_id)
        answer = turns.find_answer(thread_id, answer_key)
        # Build the context before the new messages are stored. Otherwise they would be in its
        # history too.
        built = self._build_context(thread_id, resource_id, rows, options)
        stored = self._save_rows(thread_id, rows, durable=durable)
        return Turn(built, stored, answer, repeated=bool(answer), answer_key=answer_key)

    def _end_turn(self, turn: Turn, answer: OneOrMoreMessages) -> Turn:
        thread_id = turn.context.thread_id
        rows = turns.build_rows(
            answer,
            thread_id=thread_id,
            resource_id=turn.context.resource_id,
            role="assistant",
            key=turn.answer_key,
        )
        return replace(turn, answer=self._save_rows(thread_id, rows, durable=True))

    @retry_conflicts
    def _save_rows(
        self, thread_id: str, rows: list[MessageRow], *, durable: bool
    ) -> Sequence[StoredMessage]:
        """Save the messages; a read-only memory only returns them as they would be stored."""
        if self.options.read_only:
            return turns.preview_messages(rows)
        with routing.atomic(durable=durable):
            reconciled = turn_tool_calls.reconcile_tool_calls(thread_id, rows)
            return self._save(reconciled, strip_memory=True).messages

    def summarize_thread(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        last_messages: int | None = None,
        max_input_tokens: int = summaries.MAX_INPUT_TOKENS,
        model: str | None = None,
        instructions: str = "",
        extract: ExtractionSchema | None = None,
    ) -> ConversationSummary:
        """Summarize a thread with a text model. Nothing is stored.

        Args:
            thread_id: The thread.
            resource_id: The owner of the thread.
            last_messages: Read this many of the newest messages; None for all.
            max_input_tokens: Read only as many of the newest messages as fit, by an estimate.
            model: `provider/model`; None for the model of the settings.
            instructions: Text to add to the instructions of the summary.
            extract: The schema of the data to extract from the conversation. This needs a second
                call of the model.

        Returns:
            The summary, the extracted data or the reason why there is none, and the usage. The
            summary of a thread without messages is empty.

        Raises:
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
            ProviderUnavailable: The model did not answer; try again later.
            ProviderRefused: The model refused the request, or its name or key is invalid.
        """
        thread = threads.get_thread(thread_id, resource_id=resource_id)
        newest = islice(
            recent.iterate_newest(thread.id, page_size=SUMMARY_PAGE_SIZE), last_messages
        )
        return summaries.summarize(
            summaries.select_newest_messages(newest, max_input_tokens),
            model=model,
            instructions=instructions,
            extract=extract,
            thread_id=thread.id,
        )

    def summarize_conversation(
        self,
        messages: OneOrMoreMessages,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        model: str | None = None,
        instructions: str = "",
        extract: ExtractionSchema | None = None,
    ) -> ConversationSummary:
        """Summarize these messages with a text model. Nothing is read or stored.

        Args:
            messages: The conversation. A plain string is a message of the user.
            thread_id: The thread to record the usage for. It need not exist.
            resource_id: The resource to record the usage for, the owner of the thread.
            model: `provider/model`; None for the model of the settings.
            instructions: Text to add to the instructions of the summary.
            extract: The schema of the data to extract from the conversation. This needs a second
                call of the model.

        Returns:
            The summary, the extracted data or the reason why there is none, and the usage.

        Raises:
            AccessDenied: The thread belongs to another resource.
            InvalidInput: A message is invalid, or there are too many.
            ProviderUnavailable: The model did not answer; try again later.
            ProviderRefused: The model refused the request, or its name or key is invalid.
        """
        self._check_thread_owner(thread_id, resource_id)
        # Rows need the id of a thread, even though these are not stored in any.
        row_thread_id = thread_id or resource_id or "conversation"
        rows = turns.build_rows(
            messages,
            thread_id=row_thread_id,
            resource_id=resource_id or row_thread_id,
            limit=conf.app_settings().MAX_MESSAGES_PER_SAVE,
        )
        return summaries.summarize(
            turns.preview_messages(rows),
            model=model,
            instructions=instructions,
            extract=extract,
            thread_id=thread_id,
            resource_id=resource_id,
        )

    acontext = make_async(context)
    asummarize_thread = make_async(summarize_thread)
    asummarize_conversation = make_async(summarize_conversation)


def _check_not_in_transaction() -> None:
    try:
        with routing.atomic(durable=True):
            pass
    except RuntimeError:
        raise RuntimeError(
            "save_turn with an answer must commit the user's messages first. Call it outside"
            " transaction.atomic() and ATOMIC_REQUESTS (@transaction.non_atomic_requests)."
        ) from None
