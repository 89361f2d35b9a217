"""Search over HTTP: by words, by meaning, or by both."""

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory.api.openapi import describe_responses
from mastra_memory.api.serializers import query_strings, response_bodies
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.memory import Memory


@extend_schema(tags=["search"])
class SearchViewSet(MemoryViewSet):
    """Search the messages of one resource. Scoped callers search their own."""

    serializer_class = response_bodies.SearchResultSerializer

    @extend_schema(
        parameters=[query_strings.SearchQuery],
        responses=describe_responses(response_bodies.SearchResultSerializer, 404),
    )
    def retrieve(self, request: Request) -> HttpResponseBase:
        """Find messages.

        With `searchType` the best results come first, each with a score and a snippet. Without it
        the response is as in Mastra: newest first, together with the newest messages of the thread
        if the agent uses semantic recall.
        """
        query = self.validate_query(query_strings.SearchQuery)
        memory = Memory(query["agentId"])
        resource_id = self.caller.resource_id or query["resourceId"]
        thread_id = query.get("threadId")
        thread = memory.get_thread_by_id(thread_id) if thread_id else None
        if thread is not None:
            self.caller.check_owner(thread, resource_id)
        result = memory.search(
            query["searchQuery"],
            resource_id=resource_id,
            thread_id=thread_id,
            limit=query["limit"],
            search_type=query.get("searchType"),
            options=query.get("memoryConfig"),
        )
        return self.respond(response_bodies.SearchResultSerializer.represent(result))
