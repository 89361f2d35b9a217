"""Methods that choose messages for a prompt and that search messages."""

from collections.abc import Sequence
from typing import Literal

from mastra_memory.memory.base import MemoryBase, OptionOverrides, make_async
from mastra_memory.recall import search_service, selection
from mastra_memory.recall.selection import HideSignals
from mastra_memory.search.types import SearchType
from mastra_memory.types import Include, MessageFilter, MessagePage, SearchResult


class RecallMethods(MemoryBase):
    """Recall and search messages."""

    def recall(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        page: int = 0,
        per_page: int | Literal[False] | None = None,
        direction: Literal["ASC", "DESC"] | None = None,
        vector_search_string: str | None = None,
        message_filter: MessageFilter | None = None,
        include: Sequence[Include] = (),
        include_system_reminders: bool = False,
        hide_signals: HideSignals = None,
        include_total: bool = True,
        options: OptionOverrides | None = None,
    ) -> MessagePage:
        """Return the messages that the agent should read before its next turn, oldest first.

        These are the last messages of the thread, limited by the agent's options. If semantic
        recall is on, the matches of `vector_search_string` are added with their neighbours. In
        resource scope matches come from all threads of the resource, and the thread need not
        exist yet.

        Args:
            thread_id: The thread.
            resource_id: The owner of the thread.
            page: The number of the page, from 0.
            per_page: Messages of the history; False for all; None for the value of the options.
            direction: Whether pages count from the oldest (`ASC`) or the newest message. The
                result is sorted oldest first in any case.
            vector_search_string: The text to find matches for.
            message_filter: Only history messages that match.
            include: Messages to add, with their neighbours.
            include_system_reminders: Keep system reminders if `hide_signals` is None.
            hide_signals: Which signals to hide. None: system reminders. False: none. True: all.
                A list: signals of these types.
            include_total: False skips counting: `total` is then a lower bound.
            options: Options for this call.

        Raises:
            ThreadNotFound: With `resource_id`, and unless matches come from all threads of the
                resource, the thread does not exist. Otherwise the page is empty.
            AccessDenied: The thread belongs to another resource.
            InvalidInput: An argument is invalid.
            ProviderUnavailable: The embedder did not answer.
        """
        return selection.recall(
            self.options.merged(options),
            thread_id,
            resource_id=resource_id,
            page=page,
            per_page=per_page,
            direction=direction,
            vector_search_string=vector_search_string,
            message_filter=message_filter,
            include=include,
            include_system_reminders=include_system_reminders,
            hide_signals=hide_signals,
            include_total=include_total,
        )

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
        """Search the messages of a resource, or of one thread.

        Args:
            query: Words, or a sentence for semantic search. Unless the search is semantic, it may
                have operators such as `"phrases"` and `-words`; see docs/search.md.
            resource_id: The owner of the threads.
            thread_id: Search this thread only.
            limit: The largest number of results.
            search_type: `semantic`, `text` or `hybrid`: results are sorted by score, and have
                scores, snippets and neighbours. None answers as Mastra does: results are sorted
                newest first, and found by meaning if semantic recall is on, else by words.
            options: Options for this call.

        Raises:
            InvalidInput: The query, `limit` or `search_type` is invalid.
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
            FeatureDisabled: The search needs semantic recall, which is off.
            ProviderUnavailable: The embedder did not answer.
        """
        return search_service.search(
            self.options.merged(options),
            query,
            resource_id=resource_id,
            thread_id=thread_id,
            limit=limit,
            search_type=search_type,
            agent_options=self.options,
        )

    arecall = make_async(recall)
    asearch = make_async(search)
