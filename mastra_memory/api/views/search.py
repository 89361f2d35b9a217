"""Search over HTTP: by words, by meaning, or both."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory.api import answers, wire
from mastra_memory.api import documentation as doc
from mastra_memory.api.query_parameters import fault
from mastra_memory.api.views.base import MemoryViewSet

SEARCH_TYPES = ("semantic", "text", "hybrid")


@doc.viewset("search")
class SearchViewSet(MemoryViewSet):
    """Messages of one resource. A scoped caller searches its own."""

    @extend_schema(parameters=doc.SEARCH, responses=doc.responses(answers.SearchResult, 404))
    def list(self, request: Request) -> HttpResponseBase:
        """Find messages.

        With `searchType` the best come first, each with a score and a snippet. Without it the
        answer is Mastra's: newest first, with the thread's newest messages where the agent finds
        by meaning.
        """
        memory = self.memory()
        query, named = self.params.required("searchQuery"), self.params.required("resourceId")
        search_type: Any = self.params.text("searchType")
        if search_type not in (None, *SEARCH_TYPES):
            raise fault("searchType", f"expected one of {', '.join(SEARCH_TYPES)}")
        resource_id = self.caller.resource_id or named
        thread_id = self.params.text("threadId")
        thread = memory.get_thread_by_id(thread_id) if thread_id else None
        if thread is not None:
            self.caller.check_owner(thread, resource_id)
        found = memory.search(
            query,
            resource_id=resource_id,
            thread_id=thread_id,
            limit=self.params.whole("limit", 20),
            search_type=search_type,
            options=self.params.json_object("memoryConfig"),
        )
        return self.answer(wire.search_result(found))
