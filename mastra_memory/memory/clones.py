"""Methods that copy threads and find copies."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, overload

from mastra_memory import signals
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.memory.base import MemoryBase, OptionOverrides, make_async
from mastra_memory.threads import cloning
from mastra_memory.types import CloneResult, MessageSelection, StoredMessage, StoredThread

T = TypeVar("T")


class CloneMethods(MemoryBase):
    """Copy threads and follow copies to their sources."""

    @overload
    def clone_thread(
        self,
        source_thread_id: str,
        *,
        clone_id: str | None = None,
        resource_id: str | None = None,
        title: str = "",
        metadata: Mapping[str, object] | None = None,
        selection: MessageSelection | None = None,
        options: OptionOverrides | None = None,
    ) -> CloneResult[StoredMessage]: ...

    @overload
    def clone_thread(
        self,
        source_thread_id: str,
        *,
        clone_id: str | None = None,
        resource_id: str | None = None,
        title: str = "",
        metadata: Mapping[str, object] | None = None,
        selection: MessageSelection | None = None,
        convert: Callable[[StoredMessage], T],
        options: OptionOverrides | None = None,
    ) -> CloneResult[T]: ...

    @retry_conflicts
    def clone_thread(
        self,
        source_thread_id: str,
        *,
        clone_id: str | None = None,
        resource_id: str | None = None,
        title: str = "",
        metadata: Mapping[str, object] | None = None,
        selection: MessageSelection | None = None,
        convert: Callable[[StoredMessage], object] | None = None,
        options: OptionOverrides | None = None,
    ) -> object:
        """Copy a thread with its messages, working memory and observations.

        The copied messages have new ids, and the same content, order and times.

        Args:
            source_thread_id: The thread to copy.
            clone_id: The id of the copy; None for a new UUID.
            resource_id: The owner of the copy; None for the owner of the source.
            title: The title of the copy; empty for "Clone of" and the title of the source.
            metadata: Metadata of the copy, merged over that of the source.
            selection: The messages to copy; None for all.
            convert: Convert each copied message while it is read. `messages` of the result then
                holds the converted values, and a long thread is not held in memory twice.
            options: Options for this call.

        Raises:
            ThreadNotFound: The source does not exist.
            Conflict: `clone_id` is the id of an existing thread.
            InvalidInput: An id, the title or the metadata is invalid.
        """
        result = cloning.clone_thread(
            source_thread_id,
            clone_id=clone_id,
            resource_id=resource_id,
            title=title,
            metadata=metadata,
            selection=selection,
            convert=convert,
            memory_options=self.options.merged(options).working_memory,
        )
        _send_cloned(source_thread_id, result.thread)
        return result

    @retry_conflicts
    def copy_thread(
        self,
        source_thread_id: str,
        *,
        clone_id: str | None = None,
        resource_id: str | None = None,
        title: str = "",
        metadata: Mapping[str, object] | None = None,
        selection: MessageSelection | None = None,
        options: OptionOverrides | None = None,
    ) -> CloneResult[StoredMessage]:
        """Copy a thread as `clone_thread` does, but do not read the copied messages.

        The result has no `messages`. The database copies them, however long the thread is.
        """
        result = cloning.clone_thread(
            source_thread_id,
            clone_id=clone_id,
            resource_id=resource_id,
            title=title,
            metadata=metadata,
            selection=selection,
            with_messages=False,
            memory_options=self.options.merged(options).working_memory,
        )
        _send_cloned(source_thread_id, result.thread)
        return result

    def is_clone(self, thread: StoredThread | None) -> bool:
        """Return True if the thread was copied from another one."""
        return cloning.get_clone_metadata(thread) is not None

    def get_clone_metadata(self, thread: StoredThread | None) -> dict[str, object] | None:
        """Return the origin of a clone, or None for other threads.

        Returns:
            A dict with the keys `sourceThreadId`, `clonedAt` and, unless the clone is empty,
            `lastMessageId`.
        """
        return cloning.get_clone_metadata(thread)

    def get_source_thread(self, thread_id: str) -> StoredThread | None:
        """Return the thread that a clone was copied from.

        Returns:
            None if the thread is not a clone, or if its source was deleted.
        """
        return cloning.find_source(thread_id)

    def list_clones(
        self, source_thread_id: str, *, resource_id: str | None = None
    ) -> Sequence[StoredThread]:
        """Return the direct clones of a thread, newest first.

        Args:
            source_thread_id: The thread that was copied.
            resource_id: The owner of the clones; None for the owner of the source.
        """
        return cloning.list_clones(source_thread_id, resource_id=resource_id)

    def get_clone_history(self, thread_id: str) -> list[StoredThread]:
        """Return the sources that a thread descends from, oldest first, then the thread itself."""
        return cloning.list_clone_history(thread_id)

    aclone_thread = make_async(clone_thread)
    acopy_thread = make_async(copy_thread)
    aget_source_thread = make_async(get_source_thread)
    alist_clones = make_async(list_clones)
    aget_clone_history = make_async(get_clone_history)


def _send_cloned(source_thread_id: str, clone: StoredThread) -> None:
    signals.send(signals.thread_cloned, source_thread_id=source_thread_id, thread_id=clone.id)
