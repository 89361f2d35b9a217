"""The method that returns the `recall` tool, and the reading behind it."""

from collections.abc import Sequence
from typing import Any

from mastra_memory import messages, threads
from mastra_memory.exceptions import AccessDenied, InvalidInput, Issue
from mastra_memory.memory.base import MemoryBase
from mastra_memory.observational import group_search, recall_tool
from mastra_memory.observational.group_search import GroupFilter, GroupHit
from mastra_memory.observational.recall_tool import CURRENT_THREAD, RecallRequest, RecallTool
from mastra_memory.recall import search_service, selection
from mastra_memory.types import MessageFilter, SearchHit


class RecallToolMethods(MemoryBase):
    """The tool with which an agent reads the messages behind observations."""

    def recall_tool(self, thread_id: str, *, resource_id: str | None = None) -> RecallTool | None:
        """Return the tool, or None unless the option `retrieval` of observational memory is on.

        Args:
            thread_id: The current thread, which need not exist yet.
            resource_id: The owner of the thread.

        Raises:
            AccessDenied: The thread belongs to another resource.
        """
        options = self.options.observational_memory
        if options is None or options.retrieval is None:
            return None
        thread = threads.find_thread(thread_id)
        owner = resource_id or (thread.resource_id if thread else thread_id)
        if thread is not None and thread.resource_id != owner:
            raise AccessDenied
        reader = _Reader(self, thread_id, owner, spans_threads=options.retrieval.scope != "thread")
        return recall_tool.build_tool(reader.read)


class _Reader:
    """Answer requests of the tool within one resource, or within one thread of it."""

    def __init__(
        self, memory: MemoryBase, thread_id: str, resource_id: str, *, spans_threads: bool
    ) -> None:
        self.memory = memory
        self.thread_id = thread_id
        self.resource_id = resource_id
        self.spans_threads = spans_threads

    def read(self, request: RecallRequest) -> dict[str, Any]:
        """Return the answer of the tool."""
        if request.mode == "threads":
            return self.list_threads(request)
        if request.mode == "search":
            return self.search(request)
        return self.read_messages(request)

    def read_messages(self, request: RecallRequest) -> dict[str, Any]:
        """Return a page of messages, before or after a cursor."""
        thread_id, message_filter = self.get_thread_id(request), self.build_filter(request)
        if request.cursor:
            found = messages.get_messages([request.cursor], resource_id=self.resource_id)
            if not found:
                raise InvalidInput(f"No message has the id {request.cursor}")
            thread_id = self.check_thread(found[0].thread_id)
            moment = found[0].created_at
            message_filter = (
                MessageFilter(end=moment, end_exclusive=True)
                if request.is_backwards
                else MessageFilter(start=moment)
            )
        limit = 1 if request.part_index is not None else request.limit
        page = selection.list_messages(
            thread_id,
            resource_id=self.resource_id,
            page=request.page_number,
            per_page=limit,
            direction="DESC" if request.is_backwards else "ASC",
            message_filter=message_filter,
            hide_signals=False,
        )
        in_order = sorted(page.messages, key=lambda message: message.sort_key)
        answer = recall_tool.format_messages(in_order, request)
        return {**answer, "threadId": thread_id, "page": request.page, "hasMore": page.has_more}

    def list_threads(self, request: RecallRequest) -> dict[str, Any]:
        """Return a page of the resource's threads, those with the latest activity first."""
        if not self.spans_threads:
            raise InvalidInput("Only the current thread can be read")
        page = threads.list_threads(
            resource_id=self.resource_id,
            page=max(request.page, 1) - 1,
            per_page=request.limit,
            order_by="updated_at",
        )
        lines = [
            f"[{thread.id}] {thread.title or '(no title)'}, last active {thread.updated}"
            for thread in page.threads
        ]
        return {"text": "\n".join(lines), "page": request.page, "hasMore": page.has_more}

    def search(self, request: RecallRequest) -> dict[str, Any]:
        """Return the groups of observations that match best, and messages that are in none."""
        everywhere = self.spans_threads and request.thread_id == CURRENT_THREAD
        thread_id = None if everywhere else self.get_thread_id(request)
        has_vectors = self.memory.options.semantic_recall is not None
        found = search_service.search(
            self.memory.options,
            request.query,
            resource_id=self.resource_id,
            thread_id=thread_id,
            limit=request.limit,
            search_type="hybrid" if has_vectors else "text",
        )
        ids = [hit.id for hit in found.results if _is_within(hit.created_at, request)]
        hits = self.search_groups(request, thread_id, found.results)
        in_groups = {key for hit in hits for key in hit.message_ids}
        by_id = {message.id: message for message in messages.get_messages(ids)}
        others = [by_id[key] for key in ids if key in by_id and key not in in_groups]
        return recall_tool.format_search(hits, others, request)

    def search_groups(
        self, request: RecallRequest, thread_id: str | None, found: Sequence[SearchHit]
    ) -> list[GroupHit]:
        """Return the groups of observations that match best."""
        options = self.memory.options.observational_memory
        assert options is not None
        return group_search.search_groups(
            request.query,
            {hit.id: hit.score or 0.0 for hit in found},
            GroupFilter(
                resource_id=self.resource_id,
                scope=options.scope,
                thread_id=thread_id,
                after=request.after,
                before=request.before,
            ),
            limit=request.limit,
        )

    def get_thread_id(self, request: RecallRequest) -> str:
        """Return the thread that is asked for."""
        if request.thread_id == CURRENT_THREAD:
            return self.thread_id
        return self.check_thread(request.thread_id)

    def check_thread(self, thread_id: str) -> str:
        """Return the id of a thread that may be read.

        Raises:
            InvalidInput: Only the current thread may be read.
            AccessDenied: The thread belongs to another resource.
            ThreadNotFound: There is no such thread.
        """
        if thread_id == self.thread_id:
            return thread_id
        if not self.spans_threads:
            reason = "must be the current thread"
            raise InvalidInput(f"threadId {reason}", [Issue("threadId", reason)])
        if threads.get_thread(thread_id).resource_id != self.resource_id:
            raise AccessDenied
        return thread_id

    def build_filter(self, request: RecallRequest) -> MessageFilter | None:
        """Return the filter for `before` and `after`, which are both exclusive."""
        if request.before is None and request.after is None:
            return None
        return MessageFilter(
            start=request.after, end=request.before, start_exclusive=True, end_exclusive=True
        )


def _is_within(moment: Any, request: RecallRequest) -> bool:
    after, before = request.after, request.before
    return (after is None or moment > after) and (before is None or moment < before)
