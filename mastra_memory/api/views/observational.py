"""Observational memory over HTTP: read the record and its history, and wait for buffering."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request

from mastra_memory.api.openapi import describe_responses
from mastra_memory.api.serializers import bodies, query_strings, response_bodies
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.exceptions import FeatureDisabled, InvalidInput, Issue, MemoryNotConfigured
from mastra_memory.memory import Memory


@extend_schema(tags=["observational memory"])
class ObservationalMemoryViewSet(MemoryViewSet):
    """Observations about a thread or a resource. Scoped callers reach only their own."""

    serializer_class = response_bodies.ObservationsSerializer

    @extend_schema(
        parameters=[query_strings.ObservationsQuerySchema],
        responses=describe_responses(response_bodies.ObservationsSerializer),
    )
    def retrieve(self, request: Request) -> HttpResponseBase:
        """Read the live record and the generations before it, newest first."""
        query = self.validate_query(query_strings.ObservationsQuery)
        memory = _get_memory(query["agentId"])
        owner = self._get_owner(memory, query, purpose=" lookup")
        record = memory.get_observational_record(**owner)
        history = memory.list_observational_history(
            **owner,
            start=query.get("from"),
            end=query.get("to"),
            offset=query["offset"],
            limit=query["limit"],
        )
        data = {"record": record, "history": history or None}
        return self.respond(response_bodies.ObservationsSerializer.represent(data))

    @extend_schema(
        request=bodies.BufferStatusSchema,
        responses=describe_responses(response_bodies.ObservationsSerializer),
    )
    @action(detail=False, methods=["post"], url_path="buffer-status")
    def buffer_status(self, request: Request) -> HttpResponseBase:
        """Wait until buffering has finished, for at most 30 seconds, then read the live record."""
        body = self.validate_body(bodies.BufferStatusBody)
        memory = _get_memory(body["agentId"])
        owner = self._get_owner(memory, body, purpose="")
        record = memory.wait_for_buffering(**owner)
        return self.respond(response_bodies.ObservationsSerializer.represent({"record": record}))

    def _get_owner(self, memory: Memory, values: dict[str, Any], *, purpose: str) -> dict[str, Any]:
        """Return the thread and the resource that the record belongs to.

        Raises:
            InvalidInput: An unscoped caller sent no `resourceId`.
            AccessDenied: The thread belongs to another resource.
        """
        resource_id = self.caller.owner(values.get("resourceId"))
        if resource_id is None:
            reason = "is required for observational memory" + purpose
            raise InvalidInput(f"resourceId {reason}", [Issue("resourceId", reason)])
        thread_id = values.get("threadId")
        thread = memory.get_thread_by_id(thread_id) if thread_id else None
        if thread is not None:
            self.caller.check_owner(thread, resource_id)
        return {"thread_id": thread_id, "resource_id": resource_id}


def _get_memory(agent_id: str) -> Memory:
    """Return the memory of an agent that uses observational memory.

    Raises:
        FeatureDisabled: The agent does not use it.
        AgentNotFound: The agent is not configured.
    """
    disabled = FeatureDisabled("Observational Memory is not enabled for this agent")
    try:
        memory = Memory(agent_id)
    except MemoryNotConfigured:
        raise disabled from None
    if memory.options.observational_memory is None:
        raise disabled
    return memory
