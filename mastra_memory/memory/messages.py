"""Methods that save, read, change and delete messages."""

from collections.abc import Mapping, Sequence
from typing import Literal

from mastra_memory import messages, tasks
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.embedding import queue
from mastra_memory.memory.base import make_async
from mastra_memory.memory.saving import MessageSaving
from mastra_memory.recall import selection, several_threads
from mastra_memory.recall.selection import HideSignals
from mastra_memory.types import (
    Include,
    MessageFilter,
    MessagePage,
    SavedMessages,
    StoredMessage,
)


class MessageMethods(MessageSaving):
    """Store messages and list them."""

    def save_messages(self, batch: Sequence[Mapping[str, object]]) -> SavedMessages:
        """Insert messages, or replace those whose ids exist. All of them are saved, or none.

        System messages are not stored, and `<working_memory>` tags are removed from texts.

        Args:
            batch: Messages in any of Mastra's formats, each with `threadId` and `resourceId`.

        Returns:
            The stored messages, sorted by time.

        Raises:
            InvalidInput: A message is invalid. The error names its index and the field.
            ThreadNotFound: A thread does not exist.
            AccessDenied: A thread belongs to another resource.
            Conflict: The id of a message belongs to a message of another resource.
        """
        return self._save(batch, strip_memory=True)

    def persist_messages(self, batch: Sequence[Mapping[str, object]]) -> SavedMessages:
        """Save messages as `save_messages` does, but keep `<working_memory>` tags.

        The messages are not embedded.
        """
        return self._save(batch, strip_memory=False)

    def list_messages(
        self,
        thread_id: str | None = None,
        *,
        thread_ids: Sequence[str] = (),
        resource_id: str | None = None,
        page: int = 0,
        per_page: int | Literal[False] = 40,
        direction: Literal["ASC", "DESC"] | None = None,
        newest_page: bool = False,
        message_filter: MessageFilter | None = None,
        include: Sequence[Include] = (),
        include_system_reminders: bool = False,
        hide_signals: HideSignals = None,
        include_total: bool = True,
    ) -> MessagePage:
        """Return one page of messages of a thread, or of several threads sorted by time.

        Hidden messages are left out after paging, so a page may be shorter than `per_page`.

        Args:
            thread_id: The thread.
            thread_ids: Used if `thread_id` is None. Unknown threads are ignored.
            resource_id: The owner of the thread. With `thread_ids`, threads of other resources are
                ignored.
            page: The number of the page, from 0.
            per_page: Messages on a page; False for all messages on one page.
            direction: The order of pages and messages; None for oldest first.
            newest_page: Without `direction`, count pages from the newest message.
            message_filter: Only messages that match.
            include: Messages to add, with their neighbours. For one thread only.
            include_system_reminders: Keep system reminders if `hide_signals` is None. For one
                thread only.
            hide_signals: Which messages with the role `signal` to hide. None: system reminders.
                False: none. True: all. A list: those of these types. For one thread only.
            include_total: False skips counting: `total` is then a lower bound. For one thread
                only.

        Raises:
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
            InvalidInput: `page`, `per_page` or the filter is invalid.
            TypeError: An argument that works for one thread only is used without `thread_id`.
        """
        if thread_id is None:
            if include or include_system_reminders or hide_signals is not None or not include_total:
                raise TypeError(
                    "`include`, `include_system_reminders`, `hide_signals` and `include_total`"
                    " need `thread_id`; they do not work with `thread_ids`"
                )
            return several_threads.list_messages(
                thread_ids,
                resource_id=resource_id,
                page=page,
                per_page=per_page,
                direction=direction,
                newest_page=newest_page,
                message_filter=message_filter,
            )
        return selection.list_messages(
            thread_id,
            resource_id=resource_id,
            page=page,
            per_page=per_page,
            direction=direction,
            newest_page=newest_page,
            message_filter=message_filter,
            include=include,
            include_system_reminders=include_system_reminders,
            hide_signals=hide_signals,
            include_total=include_total,
        )

    def get_messages(
        self, message_ids: Sequence[str], *, resource_id: str | None = None
    ) -> list[StoredMessage]:
        """Return the messages with these ids, sorted by time. Unknown ids are ignored.

        With `resource_id`, messages of other resources are ignored too.
        """
        return messages.get_messages(message_ids, resource_id=resource_id)

    @retry_conflicts
    def update_messages(self, changes: Sequence[Mapping[str, object]]) -> list[StoredMessage]:
        """Change messages.

        Args:
            changes: Each has the `id` of a message and the fields to change. Top-level keys of
                `content` are merged into the old content. Unknown ids are ignored.

        Returns:
            The changed messages.

        Raises:
            InvalidInput: A change is invalid. The error names its index and the field.
        """
        updated = messages.update_messages(changes, embed_for=self._embedders)
        if updated and self._embedders:
            tasks.enqueue(tasks.embed_pending)
        return updated

    @retry_conflicts
    def delete_messages(
        self,
        message_ids: Sequence[str | Mapping[str, object]],
        *,
        resource_id: str | None = None,
    ) -> int:
        """Delete messages and return how many were deleted.

        Args:
            message_ids: Ids, or mappings with the key `id`. Unknown ids are ignored.
            resource_id: Delete only messages of this resource.

        Raises:
            InvalidInput: An item is neither an id nor a mapping with an id.
        """
        ids = messages.parse_message_ids(message_ids)
        return messages.delete_messages(ids, resource_id=resource_id)

    @retry_conflicts
    def retry_embeddings(self, request_ids: Sequence[int] | None = None) -> int:
        """Queue failed embedding requests again and return how many there were.

        Args:
            request_ids: Primary keys of `EmbeddingRequest`; None for all that failed.
        """
        count = queue.retry_failed(request_ids)
        tasks.enqueue(tasks.embed_pending)
        return count

    asave_messages = make_async(save_messages)
    apersist_messages = make_async(persist_messages)
    alist_messages = make_async(list_messages)
    aget_messages = make_async(get_messages)
    aupdate_messages = make_async(update_messages)
    adelete_messages = make_async(delete_messages)
    aretry_embeddings = make_async(retry_embeddings)
