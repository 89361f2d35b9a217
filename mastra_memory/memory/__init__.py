"""`Memory`, the Python door: every public verb, a few lines each."""

from collections.abc import Mapping, Sequence
from typing import Any

from mastra_memory import messages, signals, tasks, threads
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.embedding import queue
from mastra_memory.memory.base import OptionOverrides, make_async
from mastra_memory.memory.exports import ExportMethods
from mastra_memory.memory.observational import ObservationalMemoryMethods
from mastra_memory.memory.turns import TurnMethods
from mastra_memory.memory.working_memory import WorkingMemoryMethods
from mastra_memory.recall import multi_thread, search_service, selection
from mastra_memory.search.engine import SearchType
from mastra_memory.threads import cloning
from mastra_memory.types import (
    CloneResult,
    MessagePage,
    SavedMessages,
    SearchResult,
    StoredMessage,
    StoredThread,
    ThreadPage,
)


class Memory(TurnMethods, WorkingMemoryMethods, ObservationalMemoryMethods, ExportMethods):
    """The memory of one agent. Cheap to make, holds no state but options.

    A trusted door: it checks what a call names, not who calls. Whoever serves other people's
    requests passes `resource_id`, and gets `AccessDenied` for a thread of another resource.
    """

    # Threads

    @retry_conflicts
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
        return threads.create_thread(
            resource_id,
            thread_id=thread_id,
            title=title,
            metadata=metadata,
            share_memory=self._shares_working_memory(),
        )

    @retry_conflicts
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

    @retry_conflicts
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

    @retry_conflicts
    def delete_thread(self, thread_id: str) -> bool:
        """Delete the thread and all that hangs on it; False when there was none."""
        thread = threads.find_thread(thread_id)
        if thread is None or not threads.delete_thread(thread.id):
            return False
        gone = {"thread_id": thread.id, "resource_id": thread.resource_id}
        signals.send(signals.thread_deleted, **gone)
        return True

    @retry_conflicts
    def transfer_thread(self, thread_id: str, resource_id: str) -> StoredThread:
        """Give the thread, its messages and observations to another resource.

        Raises `ThreadNotFound`.
        """
        old = threads.get_thread(thread_id)
        moved = threads.transfer_thread(thread_id, resource_id)
        owners = {"old_resource_id": old.resource_id, "resource_id": moved.resource_id}
        if old.resource_id != moved.resource_id:
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

    def recall(
        self, thread_id: str, *, options: OptionOverrides | None = None, **choices: Any
    ) -> MessagePage:
        """What an agent reads before its next turn, oldest first; see `assemble.recall`."""
        return selection.recall(self.options.merged(options), thread_id, **choices)

    def search(
        self,
        query: str,
        *,
        resource_id: str,
        thread_id: str | None = None,
        limit: int = 20,
        search_type: SearchType | None = None,
        options: OptionOverrides | None = None,
    ) -> SearchResult:
        """Messages of the resource, or of the thread if one is named; see `answering.search`."""
        return search_service.search(
            self.options.merged(options),
            query,
            resource_id=resource_id,
            thread_id=thread_id,
            limit=limit,
            search_type=search_type,
            own=self.options,
        )

    @retry_conflicts
    def retry_embeddings(self, request_ids: Sequence[int] | None = None) -> int:
        """Try again to embed what failed: these requests, or all. Returns how many."""
        retried = queue.retry_failed(request_ids)
        tasks.enqueue(tasks.embed_pending)
        return retried

    def list_messages(
        self, thread_id: str | None = None, *, thread_ids: Sequence[str] = (), **choices: Any
    ) -> MessagePage:
        """One page of a thread in the order asked for; see `assemble.list_messages`.

        Or of several threads together, by time; see `across.list_messages`.
        """
        if thread_id is None:
            return multi_thread.list_messages(thread_ids, **choices)
        return selection.list_messages(thread_id, **choices)

    def get_messages(
        self, message_ids: Sequence[str], *, resource_id: str | None = None
    ) -> list[StoredMessage]:
        """Messages by id in the order of time; unknown ones are left out."""
        return messages.get_messages(message_ids, resource_id=resource_id)

    @retry_conflicts
    def update_messages(self, changes: Sequence[Mapping[str, Any]]) -> list[StoredMessage]:
        """Change messages by id, content shallowly merged; unknown ids are skipped."""
        updated = messages.update_messages(changes, embed_for=self._embedders)
        if updated and self._embedders:
            tasks.enqueue(tasks.embed_pending)
        return updated

    @retry_conflicts
    def delete_messages(
        self,
        message_ids: Sequence[str | Mapping[str, Any]],
        *,
        resource_id: str | None = None,
    ) -> int:
        """Delete messages by id or `{id}`, of this resource only if one is named.

        Returns how many there were. Raises `InvalidInput` for an item that is neither.
        """
        ids = messages.parse_message_ids(message_ids)
        return messages.delete_messages(ids, resource_id=resource_id)

    # Clones

    @retry_conflicts
    def clone_thread(
        self, source_thread_id: str, *, options: OptionOverrides | None = None, **choices: Any
    ) -> CloneResult:
        """Copy a thread and read the copied messages; see `cloning.clone_thread`."""
        memory = self.options.merged(options).working_memory
        result = cloning.clone_thread(source_thread_id, memory=memory, **choices)
        pair = {"source_thread_id": source_thread_id, "thread_id": result.thread.id}
        signals.send(signals.thread_cloned, **pair)
        return result

    def copy_thread(
        self, source_thread_id: str, *, options: OptionOverrides | None = None, **choices: Any
    ) -> CloneResult:
        """The same without reading the messages, however long the thread is."""
        return self.clone_thread(source_thread_id, options=options, with_messages=False, **choices)

    def is_clone(self, thread: StoredThread | None) -> bool:
        """True for a thread that was copied from another."""
        return cloning.get_clone_metadata(thread) is not None

    def get_clone_metadata(self, thread: StoredThread | None) -> dict[str, Any] | None:
        """`{sourceThreadId, clonedAt, lastMessageId?}` of a clone, else None."""
        return cloning.get_clone_metadata(thread)

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
        return cloning.list_clone_history(thread_id)

    # The same verbs for async code

    acreate_thread = make_async(create_thread)
    asave_thread = make_async(save_thread)
    aget_thread_by_id = make_async(get_thread_by_id)
    aget_thread = make_async(get_thread)
    alist_threads = make_async(list_threads)
    aupdate_thread = make_async(update_thread)
    adelete_thread = make_async(delete_thread)
    atransfer_thread = make_async(transfer_thread)
    asave_messages = make_async(save_messages)
    apersist_messages = make_async(persist_messages)
    arecall = make_async(recall)
    asearch = make_async(search)
    aretry_embeddings = make_async(retry_embeddings)
    alist_messages = make_async(list_messages)
    aget_messages = make_async(get_messages)
    aupdate_messages = make_async(update_messages)
    adelete_messages = make_async(delete_messages)
    aclone_thread = make_async(clone_thread)
    acopy_thread = make_async(copy_thread)
    aget_source_thread = make_async(get_source_thread)
    alist_clones = make_async(list_clones)
    aget_clone_history = make_async(get_clone_history)
