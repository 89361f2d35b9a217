"""`Memory`, the Python door: every public verb, a few lines each."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import transaction

from mastra_memory import (
    cloning,
    conf,
    messages,
    signals,
    tasks,
    threads,
    titles,
    working_memory,
)
from mastra_memory.exceptions import FeatureDisabled, InvalidInput
from mastra_memory.models import ObservationalRecord, Scope
from mastra_memory.observational import lineage
from mastra_memory.options import MemoryOptions
from mastra_memory.recall import answering, assemble
from mastra_memory.values import (
    CloneResult,
    MessagePage,
    SavedMessages,
    SearchResult,
    StoredMessage,
    StoredThread,
    ThreadPage,
)

P = ParamSpec("P")
R = TypeVar("R")

Options = Mapping[str, Any]
"""Options for one call, over the agent's own: Mastra's names or snake_case."""


def _async(method: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """The same verb for async code, run in Django's thread for synchronous work."""
    return sync_to_async(method)


class Memory:
    """The memory of one agent. Cheap to make, holds no state but options.

    A trusted door: it checks what a call names, not who calls. Whoever serves other people's
    requests passes `resource_id`, and gets `AccessDenied` for a thread of another resource.
    """

    def __init__(self, agent_id: str | None = None, *, options: Options | None = None) -> None:
        """Options come from the settings, for the named agent, with `options` over them.

        Raises `AgentNotFound` and `MemoryNotConfigured` as `conf.agent_options` does.
        """
        self.agent_id = agent_id
        self.options: MemoryOptions = conf.agent_options(agent_id).merged(options)

    # Threads

    def create_thread(
        self,
        resource_id: str,
        *,
        thread_id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> StoredThread:
        """A new thread. One that exists for this resource comes back unchanged.

        Raises `Conflict` when the id is another resource's.
        """
        made = threads.create_thread(
            resource_id, thread_id=thread_id, title=title, metadata=metadata
        )
        self._share_working_memory(made.resource_id, metadata)
        return made

    def save_thread(
        self,
        thread_id: str,
        resource_id: str,
        *,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> StoredThread:
        """Insert the thread, or replace its title and metadata as a whole."""
        saved = threads.save_thread(thread_id, resource_id, title=title, metadata=metadata)
        self._share_working_memory(saved.resource_id, metadata)
        return saved

    def get_thread_by_id(
        self, thread_id: str, *, resource_id: str | None = None
    ) -> StoredThread | None:
        """The thread; None when there is none, or `resource_id` does not own it."""
        thread = threads.find_thread(thread_id)
        owned = thread and resource_id in (None, thread.resource_id)
        return thread if owned else None

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> StoredThread:
        """The thread. Raises `ThreadNotFound`, or `AccessDenied` for another owner's."""
        return threads.get_thread(thread_id, resource_id=resource_id)

    def list_threads(self, **choices: Any) -> ThreadPage:
        """One page of threads; see `threads.list_threads` for the choices."""
        return threads.list_threads(**choices)

    def update_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        replace_metadata: bool = False,
    ) -> StoredThread:
        """Change title and metadata; metadata is merged key by key unless it is to be replaced.

        Raises `ThreadNotFound`.
        """
        updated = threads.update_thread(
            thread_id, title=title, metadata=metadata, merge=not replace_metadata
        )
        self._share_working_memory(updated.resource_id, metadata)
        return updated

    def delete_thread(self, thread_id: str) -> bool:
        """Delete the thread and all that hangs on it; False when there was none."""
        thread = threads.find_thread(thread_id)
        if thread is None or not threads.delete_thread(thread.id):
            return False
        gone = {"thread_id": thread.id, "resource_id": thread.resource_id}
        signals.send(signals.thread_deleted, **gone)
        return True

    def transfer_thread(self, thread_id: str, resource_id: str) -> StoredThread:
        """Give the thread, its messages and observations to another resource.

        Raises `ThreadNotFound`.
        """
        old = threads.get_thread(thread_id)
        moved = threads.transfer_thread(thread_id, resource_id)
        owners = {"old_resource_id": old.resource_id, "resource_id": moved.resource_id}
        signals.send(signals.thread_transferred, thread_id=moved.id, **owners)
        return moved

    update_thread_resource_id = transfer_thread

    # Messages

    def save_messages(self, batch: Sequence[Mapping[str, Any]]) -> SavedMessages:
        """Insert or replace messages in any of Mastra's forms; all or none.

        Each names `threadId` and `resourceId`. System messages and working-memory traces are not
        stored. Raises `InvalidInput` naming index and field, `ThreadNotFound`, `AccessDenied`,
        and `Conflict`.
        """
        return self._save(batch, strip=True)

    def persist_messages(self, batch: Sequence[Mapping[str, Any]]) -> SavedMessages:
        """The same, with working-memory traces kept as they are."""
        return self._save(batch, strip=False)

    def _save(self, batch: Sequence[Mapping[str, Any]], *, strip: bool) -> SavedMessages:
        drafts = messages.draft_messages(batch, strip=strip)
        with transaction.atomic():
            stored = messages.save_messages(drafts)
            self._want_titles(stored)
        if stored:
            signals.send(
                signals.messages_saved,
                thread_ids=sorted({message.thread_id for message in stored}),
                message_ids=[message.id for message in stored],
            )
        return SavedMessages(stored)

    def _want_titles(self, stored: Sequence[StoredMessage]) -> None:
        """Threads without a title get one later, where the agent's options say so."""
        wanted = self.options.generate_title
        if wanted is None or self.options.read_only or not stored:
            return
        thread_ids = {message.thread_id for message in stored}
        for thread_id in titles.ask_for_titles(thread_ids, wanted, agent_id=self.agent_id):
            tasks.enqueue(tasks.generate_title, thread_id)

    def recall(
        self, thread_id: str, *, options: Options | None = None, **choices: Any
    ) -> MessagePage:
        """What an agent reads before its next turn, oldest first; see `assemble.recall`."""
        return assemble.recall(self.options.merged(options), thread_id, **choices)

    def search(
        self,
        query: str,
        *,
        resource_id: str,
        thread_id: str | None = None,
        limit: int = 20,
        search_type: str | None = None,
        options: Options | None = None,
    ) -> SearchResult:
        """Messages of the resource, or of the thread if one is named; see `answering.search`."""
        return answering.search(
            self.options.merged(options),
            query,
            resource_id=resource_id,
            thread_id=thread_id,
            limit=limit,
            search_type=search_type,
        )

    def list_messages(self, thread_id: str, **choices: Any) -> MessagePage:
        """One page of a thread in the order asked for; see `assemble.list_messages`."""
        return assemble.list_messages(thread_id, **choices)

    def get_messages(
        self, message_ids: Sequence[str], *, resource_id: str | None = None
    ) -> list[StoredMessage]:
        """Messages by id in the order of time; unknown ones are left out."""
        return messages.get_messages(message_ids, resource_id=resource_id)

    def update_messages(self, changes: Sequence[Mapping[str, Any]]) -> list[StoredMessage]:
        """Change messages by id, content shallowly merged; unknown ids are skipped."""
        return messages.update_messages(changes)

    def delete_messages(self, message_ids: Sequence[str | Mapping[str, Any]]) -> int:
        """Delete messages by id or `{id}`. Returns how many there were.

        Raises `InvalidInput` for an item that is neither.
        """
        return messages.delete_messages(messages.ids_of(message_ids))

    # Clones

    def clone_thread(
        self, source_thread_id: str, *, options: Options | None = None, **choices: Any
    ) -> CloneResult:
        """Copy a thread and read the copied messages; see `cloning.clone_thread`."""
        memory = self.options.merged(options).working_memory
        result = cloning.clone_thread(source_thread_id, memory=memory, **choices)
        pair = {"source_thread_id": source_thread_id, "thread_id": result.thread.id}
        signals.send(signals.thread_cloned, **pair)
        return result

    def copy_thread(
        self, source_thread_id: str, *, options: Options | None = None, **choices: Any
    ) -> CloneResult:
        """The same without reading the messages, however long the thread is."""
        return self.clone_thread(source_thread_id, options=options, with_messages=False, **choices)

    def is_clone(self, thread: StoredThread | None) -> bool:
        """True for a thread that was copied from another."""
        return cloning.clone_metadata(thread) is not None

    def get_clone_metadata(self, thread: StoredThread | None) -> dict[str, Any] | None:
        """`{sourceThreadId, clonedAt, lastMessageId?}` of a clone, else None."""
        return cloning.clone_metadata(thread)

    def get_source_thread(self, thread_id: str) -> StoredThread | None:
        """The thread a clone was copied from, None when it is gone or there is none."""
        return cloning.find_source(thread_id)

    def list_clones(
        self, source_thread_id: str, *, resource_id: str | None = None
    ) -> Sequence[StoredThread]:
        """Direct clones within one resource, newest first."""
        return cloning.list_clones(source_thread_id, resource_id=resource_id)

    def get_clone_history(self, thread_id: str) -> list[StoredThread]:
        """The thread's ancestors, oldest first, and itself."""
        return cloning.clone_history(thread_id)

    # Working memory

    def get_working_memory(
        self, thread_id: str, *, resource_id: str | None = None, options: Options | None = None
    ) -> str | None:
        """The text of the thread or, in resource scope, of its resource; None when there is none.

        None too when working memory is off. In resource scope the thread's own resource is meant
        unless `resource_id` is given; raises `InvalidInput` if the thread does not exist either.
        """
        choice = self.options.merged(options).working_memory
        if not choice.enabled:
            return None
        if choice.scope == Scope.THREAD:
            return working_memory.find_for_thread(thread_id)
        return working_memory.find_for_resource(resource_id or self._owner_of(thread_id))

    def update_working_memory(
        self,
        thread_id: str,
        content: str,
        *,
        resource_id: str | None = None,
        options: Options | None = None,
        source: str = "python",
        author_id: Any = None,
    ) -> int:
        """Replace the text; what it was stays as a revision. Returns the new version.

        Raises `FeatureDisabled` when working memory is off, `ThreadNotFound` in thread scope, and
        `InvalidInput` when no resource is known.
        """
        choice = self.options.merged(options).working_memory
        if not choice.enabled:
            raise FeatureDisabled("Working memory is not enabled for this memory instance")
        if choice.scope == Scope.THREAD:
            thread = threads.touch_thread(thread_id)
            return working_memory.save_for_thread(
                thread.id, thread.resource_id, content, source=source, author_id=author_id
            )
        owner = resource_id or self._owner_of(thread_id)
        return working_memory.save_for_resource(owner, content, source=source, author_id=author_id)

    def get_working_memory_template(
        self, *, options: Options | None = None
    ) -> working_memory.Template | None:
        """What an empty working memory looks like; None when working memory is off."""
        choice = self.options.merged(options).working_memory
        return working_memory.template_of(choice) if choice.enabled else None

    def _owner_of(self, thread_id: str) -> str:
        thread = threads.find_thread(thread_id)
        if thread is None:
            raise InvalidInput(
                "Resource-scoped working memory needs a resourceId, or a thread that exists"
            )
        return thread.resource_id

    def _share_working_memory(self, resource_id: str, metadata: Mapping[str, Any] | None) -> None:
        """Working memory given with a thread is its resource's too, where that is the scope."""
        choice = self.options.working_memory
        content, _ = working_memory.taken_out(metadata)
        if content and choice.enabled and choice.scope == Scope.RESOURCE:
            working_memory.save_for_resource(resource_id, content, source="api")

    # Observational memory

    def get_observational_record(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> ObservationalRecord | None:
        """The head of the lineage, in the agent's scope; None when nothing was observed.

        Raises `FeatureDisabled` when observational memory is off.
        """
        return lineage.find_head(self._om_scope(), thread_id=thread_id, resource_id=resource_id)

    def list_observational_history(
        self, *, thread_id: str | None = None, resource_id: str | None = None, **choices: Any
    ) -> list[ObservationalRecord]:
        """Generations newest first, the head included; see `lineage.list_history`."""
        return lineage.list_history(
            self._om_scope(), thread_id=thread_id, resource_id=resource_id, **choices
        )

    def wait_for_buffering(
        self,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        timeout: float = 30.0,
    ) -> ObservationalRecord | None:
        """Wait until no observation is being prepared, at most `timeout` seconds; then the head."""
        return lineage.wait_for_buffering(
            self._om_scope(), thread_id=thread_id, resource_id=resource_id, timeout=timeout
        )

    def update_observational_memory_config(
        self,
        config: Mapping[str, Any],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
    ) -> ObservationalRecord:
        """Thresholds for this record alone, merged over those set before.

        Raises `InvalidInput` when there is no record.
        """
        return lineage.override_config(
            self._om_scope(), config, thread_id=thread_id, resource_id=resource_id
        )

    def _om_scope(self) -> str:
        if self.options.observational_memory is None:
            raise FeatureDisabled("Observational Memory is not enabled for this agent")
        return self.options.observational_memory.scope

    # The same verbs for async code

    acreate_thread = _async(create_thread)
    asave_thread = _async(save_thread)
    aget_thread_by_id = _async(get_thread_by_id)
    aget_thread = _async(get_thread)
    alist_threads = _async(list_threads)
    aupdate_thread = _async(update_thread)
    adelete_thread = _async(delete_thread)
    atransfer_thread = _async(transfer_thread)
    asave_messages = _async(save_messages)
    apersist_messages = _async(persist_messages)
    arecall = _async(recall)
    asearch = _async(search)
    alist_messages = _async(list_messages)
    aget_messages = _async(get_messages)
    aupdate_messages = _async(update_messages)
    adelete_messages = _async(delete_messages)
    aclone_thread = _async(clone_thread)
    acopy_thread = _async(copy_thread)
    aget_source_thread = _async(get_source_thread)
    alist_clones = _async(list_clones)
    aget_clone_history = _async(get_clone_history)
    aget_working_memory = _async(get_working_memory)
    aupdate_working_memory = _async(update_working_memory)
    aget_observational_record = _async(get_observational_record)
    alist_observational_history = _async(list_observational_history)
    await_for_buffering = _async(wait_for_buffering)
