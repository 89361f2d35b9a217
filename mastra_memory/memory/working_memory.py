"""Methods of working memory."""

import uuid
from collections.abc import Sequence

from mastra_memory import threads, working_memory
from mastra_memory.context.thread_history import ThreadState
from mastra_memory.db import routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import AccessDenied, FeatureDisabled, InvalidInput
from mastra_memory.memory.base import MemoryBase, OptionOverrides, make_async
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.types import RevisionPage, StoredThread

UserId = int | str | uuid.UUID
"""A primary key of the user model."""
NO_RESOURCE = "Resource-scoped working memory needs a resourceId, or a thread that exists"


class WorkingMemoryMethods(MemoryBase):
    """Read and change the text kept for a thread or for its resource."""

    def get_working_memory(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> str | None:
        """Return the working memory, or None if there is none or the feature is off.

        Args:
            thread_id: The thread. In resource scope its resource is used.
            resource_id: The owner of the thread. In resource scope, the thread need not exist.
            options: Options for this call.

        Raises:
            AccessDenied: The thread belongs to another resource.
            InvalidInput: In resource scope, the thread does not exist and there is no
                `resource_id`.
        """
        merged = self.options.merged(options)
        if not merged.working_memory.enabled:
            return None
        state = ThreadState.read(merged, thread_id, resource_id)
        if merged.working_memory.scope != "thread" and not (state.exists or resource_id):
            raise InvalidInput(NO_RESOURCE)
        return state.working_memory or None

    @retry_conflicts
    def update_working_memory(
        self,
        thread_id: str,
        content: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
        mode: working_memory.UpdateMode = "replace",
        remove: Sequence[str] = (),
        source: str = "python",
        author_id: UserId | None = None,
    ) -> int:
        """Change the working memory and return its new version. Old texts stay as revisions.

        Args:
            thread_id: The thread. In resource scope its resource is used.
            content: The new text; empty to clear it. JSON text if the options have a schema.
            resource_id: The owner of the thread. In resource scope, the thread need not exist.
            options: Options for this call.
            mode: `replace` replaces the text. With a schema, `merge` merges JSON into the stored
                JSON, and null removes a key; `update` merges too, but null changes nothing.
            remove: With a schema and a mode that merges, paths of keys to remove before, such as
                `job.title`.
            source: Where the change comes from; stored with the revision.
            author_id: The user who makes the change; stored with the revision.

        Raises:
            FeatureDisabled: Working memory is off.
            ThreadNotFound: In thread scope, the thread does not exist.
            AccessDenied: The thread belongs to another resource.
            InvalidInput: There is no resource, the text does not match the schema, or the
                unfilled template would replace a text with content.
        """
        merged = self._get_working_memory_options(options)
        with routing.atomic():  # Locks the thread, so that it cannot be deleted meanwhile.
            owner = self._get_working_memory_owner(merged, thread_id, resource_id, touch=True)
            return working_memory.update_content(
                owner,
                content,
                merged,
                mode=mode,
                remove=remove,
                source=source,
                author_id=author_id,
            )

    def get_working_memory_template(
        self, *, options: OptionOverrides | None = None
    ) -> working_memory.Template | None:
        """Return the template of an empty working memory, or None if the feature is off."""
        merged = self.options.merged(options).working_memory
        return working_memory.build_template(merged) if merged.enabled else None

    def get_system_message(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> str | None:
        """Return the part of the system prompt that is about working memory.

        Args:
            thread_id: The thread. In resource scope its resource is used.
            resource_id: The owner of the thread. In resource scope, the thread need not exist.
            options: Options for this call.

        Returns:
            Instructions and the current text, or None if working memory is off.

        Raises:
            AccessDenied: The thread belongs to another resource.
            InvalidInput: In resource scope, the thread does not exist and there is no
                `resource_id`.
        """
        merged = self.options.merged(options)
        if not merged.working_memory.enabled:
            return None
        content = self.get_working_memory(thread_id, resource_id=resource_id, options=options)
        return working_memory.build_system_text(
            merged.working_memory, content, read_only=merged.read_only
        )

    def working_memory_tool(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> working_memory.MemoryTool | None:
        """Return the tool with which the model updates its working memory in this thread.

        The tool's handler creates the thread if it is missing, and does not raise for invalid
        arguments: it returns an error that the model can read.

        Args:
            thread_id: The thread.
            resource_id: The owner of the thread. The handler raises `AccessDenied` for a thread
                of another resource.
            options: Options for the tool's calls.

        Returns:
            None if working memory is off, read-only, or not managed by the agent.
        """
        merged = self.options.merged(options)
        memory_options = merged.working_memory
        if not memory_options.enabled or not memory_options.agent_managed or merged.read_only:
            return None

        def write(content: str, remove: Sequence[str] = ()) -> int:
            self._get_or_create_thread(thread_id, resource_id)
            return self.update_working_memory(
                thread_id,
                content,
                resource_id=resource_id,
                options=options,
                mode="update",
                remove=remove,
                source="agent",
            )

        def read() -> str | None:
            return self.get_working_memory(thread_id, resource_id=resource_id, options=options)

        return working_memory.build_tool(memory_options, write=write, read=read)

    def list_working_memory_revisions(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
        page: int = 0,
        per_page: int = 20,
    ) -> RevisionPage:
        """Return one page of the current and earlier texts, newest first.

        Args:
            thread_id: The thread. In resource scope its resource is used.
            resource_id: The owner of the thread. In resource scope, the thread need not exist.
            options: Options for this call.
            page: The number of the page, from 0.
            per_page: Revisions on a page.

        Raises:
            FeatureDisabled: Working memory is off.
            AccessDenied: The thread belongs to another resource.
            InvalidInput: There is no resource, or `page` or `per_page` is invalid.
        """
        owner = self._get_working_memory_owner(
            self._get_working_memory_options(options), thread_id, resource_id
        )
        return working_memory.list_revisions(owner, page=page, per_page=per_page)

    @retry_conflicts
    def restore_working_memory(
        self,
        thread_id: str,
        version: int,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
        source: str = "python",
        author_id: UserId | None = None,
    ) -> int:
        """Store the text of an earlier version again and return the new version.

        Args:
            thread_id: The thread. In resource scope its resource is used.
            version: The version to restore.
            resource_id: The owner of the thread. In resource scope, the thread need not exist.
            options: Options for this call.
            source: Where the change comes from; stored with the revision.
            author_id: The user who makes the change; stored with the revision.

        Raises:
            FeatureDisabled: Working memory is off.
            ThreadNotFound: In thread scope, the thread does not exist.
            AccessDenied: The thread belongs to another resource.
            InvalidInput: There is no resource, or no such version.
        """
        merged = self._get_working_memory_options(options)
        with routing.atomic():  # Locks the thread, so that it cannot be deleted meanwhile.
            owner = self._get_working_memory_owner(merged, thread_id, resource_id, touch=True)
            return working_memory.restore_revision(
                owner, version, source=source, author_id=author_id
            )

    def _get_working_memory_options(self, options: OptionOverrides | None) -> WorkingMemoryOptions:
        merged = self.options.merged(options).working_memory
        if not merged.enabled:
            raise FeatureDisabled("Working memory is not enabled for this memory instance")
        return merged

    def _get_working_memory_owner(
        self,
        options: WorkingMemoryOptions,
        thread_id: str,
        resource_id: str | None,
        *,
        touch: bool = False,
    ) -> working_memory.Owner:
        """Return the thread or resource that owns the text; `touch` locks the thread.

        Raises:
            AccessDenied: The thread belongs to another resource.
        """
        is_by_thread = options.scope == "thread"
        if is_by_thread and touch:
            thread: StoredThread | None = threads.touch_thread(thread_id)
        else:
            thread = threads.find_thread(thread_id) if thread_id else None
        if thread is not None and resource_id is not None and thread.resource_id != resource_id:
            raise AccessDenied
        owner_id = thread.resource_id if thread else resource_id
        if is_by_thread:
            return working_memory.Owner(owner_id or "", thread_id)
        if not owner_id:
            raise InvalidInput(NO_RESOURCE)
        return working_memory.Owner(owner_id)

    aget_working_memory = make_async(get_working_memory)
    aupdate_working_memory = make_async(update_working_memory)
    aget_system_message = make_async(get_system_message)
    alist_working_memory_revisions = make_async(list_working_memory_revisions)
    arestore_working_memory = make_async(restore_working_memory)
