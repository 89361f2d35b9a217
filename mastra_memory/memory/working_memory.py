"""The verbs of working memory."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from mastra_memory import threads, working_memory
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import FeatureDisabled, InvalidInput
from mastra_memory.memory.base import MemoryBase, OptionOverrides, make_async
from mastra_memory.models import Scope
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.types import RevisionPage


class WorkingMemoryMethods(MemoryBase):
    """The text kept for a thread or its resource."""

    def get_working_memory(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> str | None:
        """The text of the thread or, in resource scope, of its resource; None when there is none.

        None too when working memory is off. In resource scope the thread's own resource is meant
        unless `resource_id` is given; raises `InvalidInput` if the thread does not exist either.
        """
        choice = self.options.merged(options).working_memory
        if not choice.enabled:
            return None
        return working_memory.find_content(self._place(choice, thread_id, resource_id))

    @retry_conflicts
    def update_working_memory(
        self,
        thread_id: str,
        content: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
        mode: working_memory.Mode = "replace",
        source: str = "python",
        author_id: Any = None,
    ) -> int:
        """Replace the text, or merge JSON into it; what it was stays as a revision.

        Returns the new version. Raises `FeatureDisabled` when working memory is off,
        `ThreadNotFound` in thread scope, and `InvalidInput` when no resource is known, when the
        text does not fit the schema, or when it is the empty template in place of something.
        """
        choice = self._working_memory(options)
        with transaction.atomic():  # The thread stays locked, so that nobody deletes it meanwhile.
            place = self._place(choice, thread_id, resource_id, touch=True)
            return working_memory.change(
                place, content, choice, mode=mode, source=source, author_id=author_id
            )

    def get_working_memory_template(
        self, *, options: OptionOverrides | None = None
    ) -> working_memory.Template | None:
        """What an empty working memory looks like; None when working memory is off."""
        choice = self.options.merged(options).working_memory
        return working_memory.template_of(choice) if choice.enabled else None

    def get_system_message(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> str | None:
        """What the agent is told about its working memory; None when that is off."""
        merged = self.options.merged(options)
        if not merged.working_memory.enabled:
            return None
        content = self.get_working_memory(thread_id, resource_id=resource_id, options=options)
        return working_memory.system_text(
            merged.working_memory, content, read_only=merged.read_only
        )

    def working_memory_tool(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
    ) -> working_memory.MemoryTool | None:
        """The tool with which the agent updates its working memory in this thread.

        None when working memory is off, read-only, or not the agent's to manage. The handler
        creates a missing thread for `resource_id`, and refuses one of another resource.
        """
        merged = self.options.merged(options)
        choice = merged.working_memory
        if not choice.enabled or not choice.agent_managed or merged.read_only:
            return None
        pair: dict[str, Any] = {"resource_id": resource_id, "options": options}

        def write(content: str) -> int:
            self._ensure_thread(thread_id, resource_id)
            return self.update_working_memory(
                thread_id, content, mode="merge", source="agent", **pair
            )

        return working_memory.tool_of(
            choice, write=write, read=lambda: self.get_working_memory(thread_id, **pair)
        )

    def list_working_memory_revisions(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
        page: int = 0,
        per_page: int = 20,
    ) -> RevisionPage:
        """What the text was, newest first, who changed it and from where."""
        place = self._place(self._working_memory(options), thread_id, resource_id)
        return working_memory.list_revisions(place, page=page, per_page=per_page)

    @retry_conflicts
    def restore_working_memory(
        self,
        thread_id: str,
        version: int,
        *,
        resource_id: str | None = None,
        options: OptionOverrides | None = None,
        source: str = "python",
        author_id: Any = None,
    ) -> int:
        """Make the text what it was at `version`. Returns the new version.

        Raises `InvalidInput` when there is no such version.
        """
        place = self._place(self._working_memory(options), thread_id, resource_id)
        return working_memory.restore(place, version, source=source, author_id=author_id)

    def _working_memory(self, options: OptionOverrides | None) -> WorkingMemoryOptions:
        choice = self.options.merged(options).working_memory
        if not choice.enabled:
            raise FeatureDisabled("Working memory is not enabled for this memory instance")
        return choice

    def _place(
        self,
        choice: WorkingMemoryOptions,
        thread_id: str,
        resource_id: str | None,
        *,
        touch: bool = False,
    ) -> working_memory.Place:
        """Whose text is meant. In thread scope the thread must exist."""
        if choice.scope != Scope.THREAD:
            return working_memory.Place(resource_id or self._owner_of(thread_id))
        thread = threads.touch_thread(thread_id) if touch else threads.find_thread(thread_id)
        owner = thread.resource_id if thread else ""
        return working_memory.Place(owner, thread_id)

    def _owner_of(self, thread_id: str) -> str:
        thread = threads.find_thread(thread_id)
        if thread is None:
            raise InvalidInput(
                "Resource-scoped working memory needs a resourceId, or a thread that exists"
            )
        return thread.resource_id

    def _shares_working_memory(self) -> bool:
        """Whether working memory given with a thread is its resource's too."""
        choice = self.options.working_memory
        return choice.enabled and choice.scope == Scope.RESOURCE

    def _share_working_memory(self, resource_id: str, metadata: Mapping[str, Any] | None) -> None:
        content, _ = working_memory.taken_out(metadata)
        if content and self._shares_working_memory():
            working_memory.save_for_resource(resource_id, content, source="api")

    aget_working_memory = make_async(get_working_memory)
    aupdate_working_memory = make_async(update_working_memory)
    aget_system_message = make_async(get_system_message)
    alist_working_memory_revisions = make_async(list_working_memory_revisions)
    arestore_working_memory = make_async(restore_working_memory)
