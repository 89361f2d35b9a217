"""Methods that create, read, change and delete threads."""

from collections.abc import Mapping
from typing import Literal

from django.db.models import QuerySet

from mastra_memory import signals, threads
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.memory.base import MemoryBase, make_async
from mastra_memory.models import Thread
from mastra_memory.types import StoredThread, ThreadPage


class ThreadMethods(MemoryBase):
    """Store threads and list them."""

    @retry_conflicts
    def create_thread(
        self,
        resource_id: str,
        *,
        thread_id: str | None = None,
        title: str = "",
        metadata: Mapping[str, object] | None = None,
    ) -> StoredThread:
        """Create a thread, or return the existing one unchanged.

        Args:
            resource_id: The owner of the thread.
            thread_id: The id of the thread; None for a new UUID.
            title: The title. If it is empty and `generateTitle` is on, a title is generated later.
            metadata: JSON data. The text under `workingMemory` is stored as working memory.

        Raises:
            Conflict: The id belongs to a thread of another resource.
            InvalidInput: An id, the title or the metadata is invalid.
        """
        return threads.create_thread(
            resource_id,
            thread_id=thread_id,
            title=title,
            metadata=metadata,
            save_memory_for_resource=self._has_resource_working_memory(),
        )

    @retry_conflicts
    def save_thread(
        self,
        thread_id: str,
        resource_id: str,
        *,
        title: str = "",
        metadata: Mapping[str, object] | None = None,
    ) -> StoredThread:
        """Create a thread, or replace the title and all metadata of the existing one.

        Args:
            thread_id: The id of the thread.
            resource_id: The owner of the thread.
            title: The new title; empty for none.
            metadata: JSON data. The text under `workingMemory` is stored as working memory.

        Raises:
            Conflict: The id belongs to a thread of another resource.
            InvalidInput: An id, the title or the metadata is invalid.
        """
        thread = threads.save_thread(thread_id, resource_id, title=title, metadata=metadata)
        self._copy_working_memory_to_resource(thread.resource_id, metadata)
        return thread

    def get_thread_by_id(
        self, thread_id: str, *, resource_id: str | None = None
    ) -> StoredThread | None:
        """Return the thread, or None if it does not exist.

        With `resource_id`, a thread of another resource counts as missing.
        """
        thread = threads.find_thread(thread_id)
        is_owned = thread and resource_id in (None, thread.resource_id)
        return thread if is_owned else None

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> StoredThread:
        """Return the thread.

        Raises:
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread does not belong to `resource_id`.
        """
        return threads.get_thread(thread_id, resource_id=resource_id)

    def list_threads(
        self,
        *,
        resource_id: str | None = None,
        metadata: Mapping[str, object] | None = None,
        within: QuerySet[Thread] | None = None,
        page: int = 0,
        per_page: int | Literal[False] = 100,
        order_by: Literal["created_at", "updated_at"] = "created_at",
        direction: Literal["ASC", "DESC"] = "DESC",
    ) -> ThreadPage:
        """Return one page of threads.

        Args:
            resource_id: Only threads of this resource; None for all resources.
            metadata: Only threads whose metadata contains these keys and values.
            within: Only threads that are in this queryset.
            page: The number of the page, from 0.
            per_page: Threads on a page; False for all threads on one page.
            order_by: The time to sort by. Threads with equal times are sorted by id.
            direction: `DESC` for newest first.

        Raises:
            InvalidInput: A metadata key, `page` or `per_page` is invalid.
        """
        return threads.list_threads(
            resource_id=resource_id,
            metadata=metadata,
            within=within,
            page=page,
            per_page=per_page,
            order_by=order_by,
            direction=direction,
        )

    @retry_conflicts
    def update_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, object] | None = None,
        replace_metadata: bool = False,
    ) -> StoredThread:
        """Change the title and the metadata of a thread.

        Args:
            thread_id: The id of the thread.
            title: The new title; None keeps the old one.
            metadata: Top-level keys to set; None keeps the metadata.
            replace_metadata: Remove the keys that `metadata` does not contain, except reserved
                keys such as `workingMemory`.

        Raises:
            ThreadNotFound: The thread does not exist.
            InvalidInput: The title or the metadata is invalid.
        """
        thread = threads.update_thread(
            thread_id, title=title, metadata=metadata, merge=not replace_metadata
        )
        self._copy_working_memory_to_resource(thread.resource_id, metadata)
        return thread

    @retry_conflicts
    def delete_thread(self, thread_id: str) -> bool:
        """Delete a thread with its messages, working memory and observations.

        Returns:
            False if the thread did not exist.
        """
        thread = threads.find_thread(thread_id)
        if thread is None or not threads.delete_thread(thread.id):
            return False
        signals.send(signals.thread_deleted, thread_id=thread.id, resource_id=thread.resource_id)
        return True

    @retry_conflicts
    def transfer_thread(self, thread_id: str, resource_id: str) -> StoredThread:
        """Change the owner of a thread, its messages and its observations.

        Raises:
            ThreadNotFound: The thread does not exist.
            InvalidInput: `resource_id` is invalid.
        """
        old = threads.get_thread(thread_id)
        thread = threads.transfer_thread(thread_id, resource_id)
        if old.resource_id != thread.resource_id:
            signals.send(
                signals.thread_transferred,
                thread_id=thread.id,
                old_resource_id=old.resource_id,
                resource_id=thread.resource_id,
            )
        return thread

    # The name of this method in Mastra's `Memory`.
    update_thread_resource_id = transfer_thread

    acreate_thread = make_async(create_thread)
    asave_thread = make_async(save_thread)
    aget_thread_by_id = make_async(get_thread_by_id)
    aget_thread = make_async(get_thread)
    alist_threads = make_async(list_threads)
    aupdate_thread = make_async(update_thread)
    adelete_thread = make_async(delete_thread)
    atransfer_thread = make_async(transfer_thread)
