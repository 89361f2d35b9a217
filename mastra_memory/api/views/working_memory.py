"""Working memory over HTTP."""

from functools import partial

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request

from mastra_memory.api.openapi import describe_responses
from mastra_memory.api.pagination import RevisionPagination
from mastra_memory.api.serializers import bodies, query_strings, response_bodies
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.memory import Memory
from mastra_memory.options import parse_request_options

NO_WORKING_MEMORY = {
    "workingMemory": None,
    "source": "thread",
    "workingMemoryTemplate": None,
    "threadExists": False,
}


@extend_schema(tags=["working memory"])
class WorkingMemoryViewSet(MemoryViewSet):
    """The working memory of a thread or its resource. Scoped callers reach only their own."""

    serializer_class = response_bodies.WorkingMemorySerializer

    @extend_schema(
        parameters=[query_strings.WorkingMemoryQuery],
        responses=describe_responses(response_bodies.WorkingMemorySerializer),
    )
    def retrieve(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Read the working memory that the agent uses in a thread."""
        query = self.validate_query(query_strings.WorkingMemoryQuery)
        memory, has_agent = self.get_read_memory(query["agentId"])
        if not has_agent:
            return self.respond(NO_WORKING_MEMORY)
        overrides = parse_request_options(query.get("memoryConfig"), memory.options)
        options = memory.options.merged(overrides)
        owner, exists = self._find_owner(memory, thread_id, query.get("resourceId"))
        by_resource = options.working_memory.scope != "thread" and owner is not None
        data = {
            "workingMemory": memory.get_working_memory(
                thread_id, resource_id=owner, options=options.raw
            ),
            "source": "resource" if by_resource else "thread",
            "workingMemoryTemplate": memory.get_working_memory_template(options=options.raw),
            "threadExists": exists,
        }
        return self.respond(response_bodies.WorkingMemorySerializer.represent(data))

    @extend_schema(
        parameters=[query_strings.UpdateWorkingMemoryQuery],
        request=bodies.UpdateWorkingMemoryBody,
        responses=describe_responses(response_bodies.SuccessSerializer, 404),
    )
    def update(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Replace the working memory, or merge JSON into it. The old text is kept as a revision.

        If the agent has a schema, the text must be valid against it. An empty template is refused
        if it would erase information.
        """
        query = self.validate_query(query_strings.UpdateWorkingMemoryQuery)
        memory = Memory(query["agentId"])
        body = self.validate_body(bodies.UpdateWorkingMemoryBody)
        thread = self.get_thread(memory, thread_id, _clean_resource_id(body.get("resourceId")))
        memory.update_working_memory(
            thread.id,
            body["workingMemory"],
            resource_id=thread.resource_id,
            options=parse_request_options(body.get("memoryConfig"), memory.options),
            mode=query["mode"],
            source="api",
            author_id=request.user.pk,
        )
        return self.respond({"success": True})

    @extend_schema(
        parameters=[query_strings.RevisionListQuery],
        responses=describe_responses(response_bodies.RevisionSerializer(many=True), 404),
    )
    @action(
        detail=False,
        serializer_class=response_bodies.RevisionSerializer,
        pagination_class=RevisionPagination,
    )
    def revisions(self, request: Request, thread_id: str) -> HttpResponseBase:
        """List the versions of the working memory, newest first, with author and source."""
        query = self.validate_query(query_strings.RevisionListQuery)
        memory = Memory(query["agentId"])
        thread = self.get_thread(memory, thread_id, _clean_resource_id(query.get("resourceId")))
        read_page = partial(
            memory.list_working_memory_revisions,
            thread.id,
            resource_id=thread.resource_id,
            options=parse_request_options(query.get("memoryConfig"), memory.options),
        )
        page = self.paginate_queryset(read_page)
        response: HttpResponseBase = self.get_paginated_response(
            response_bodies.RevisionSerializer.represent_list(page)
        )
        return response

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        request=bodies.RestoreWorkingMemoryBody,
        responses=describe_responses(response_bodies.RestoredSerializer, 404),
    )
    @action(detail=False, methods=["post"])
    def restore(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Restore the text of an earlier version; this adds a new version."""
        query = self.validate_query(query_strings.AgentQuery)
        memory = Memory(query["agentId"])
        body = self.validate_body(bodies.RestoreWorkingMemoryBody)
        thread = self.get_thread(memory, thread_id, _clean_resource_id(body.get("resourceId")))
        version = memory.restore_working_memory(
            thread.id,
            body["version"],
            resource_id=thread.resource_id,
            options=parse_request_options(body.get("memoryConfig"), memory.options),
            source="api",
            author_id=request.user.pk,
        )
        return self.respond({"success": True, "version": version})

    def _find_owner(
        self, memory: Memory, thread_id: str, resource_id: str | None
    ) -> tuple[str | None, bool]:
        """Return the resource whose working memory is read, and whether the thread exists."""
        named = self.caller.owner(_clean_resource_id(resource_id))
        thread = memory.get_thread_by_id(thread_id)
        if thread is None:
            return named, False
        self.caller.check_owner(thread, named)
        return thread.resource_id, True


def _clean_resource_id(resource_id: str | None) -> str | None:
    """Return None for a missing id; the npm client sends `undefined` in that case."""
    return None if resource_id in (None, "", "undefined") else resource_id
