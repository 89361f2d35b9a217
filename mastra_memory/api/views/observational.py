"""Observational memory over HTTP: read, observe, reflect and correct."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request

from mastra_memory.api.openapi import describe_responses
from mastra_memory.api.pagination import GenerationPagination
from mastra_memory.api.serializers import bodies, query_strings, response_bodies
from mastra_memory.api.serializers import observational as serializers
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

    @extend_schema(
        parameters=[serializers.GenerationListQuerySchema],
        responses=describe_responses(response_bodies.ObservationalRecordSerializer(many=True)),
    )
    @action(
        detail=False,
        serializer_class=response_bodies.ObservationalRecordSerializer,
        pagination_class=GenerationPagination,
    )
    def history(self, request: Request) -> HttpResponseBase:
        """List the generations of the record, newest first, the live one included."""
        query = self.validate_query(serializers.GenerationListQuery)
        memory = _get_memory(query["agentId"])
        read_page = partial(
            memory.list_observational_generations,
            **self._get_owner(memory, query, purpose=""),
            start=query.get("from"),
            end=query.get("to"),
        )
        page = self.paginate_queryset(read_page)
        represent = response_bodies.ObservationalRecordSerializer.represent_list
        response: HttpResponseBase = self.get_paginated_response(represent(page))
        return response

    @extend_schema(
        parameters=[serializers.ObservedQuerySchema],
        responses=describe_responses(serializers.ObservationStatusSerializer, 404),
    )
    @action(detail=False)
    def status(self, request: Request) -> HttpResponseBase:
        """Read how many tokens are observed and pending, and what is due."""
        query = self.validate_query(serializers.ObservedQuery)
        memory = _get_memory(query["agentId"])
        status = memory.get_observational_status(**self._get_owner(memory, query, purpose=""))
        return self.respond(serializers.ObservationStatusSerializer.represent(status))

    @extend_schema(
        parameters=[serializers.ObservedQuerySchema],
        responses=describe_responses(serializers.ObservationListSerializer, 404),
    )
    @action(detail=False)
    def observations(self, request: Request) -> HttpResponseBase:
        """List the single observations of the live record, with the messages behind them."""
        query = self.validate_query(serializers.ObservedQuery)
        memory = _get_memory(query["agentId"])
        entries = memory.list_observations(**self._get_owner(memory, query, purpose=""))
        represent = serializers.ObservationItemSerializer.represent_list
        return self.respond({"observations": represent(entries)})

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        request=serializers.ObserveSchema,
        responses=describe_responses(serializers.ObservationOutcomeSerializer, 404, 409, 502, 503),
    )
    @action(detail=False, methods=["post"])
    def observe(self, request: Request) -> HttpResponseBase:
        """Observe all messages now, whatever the thresholds are, and wait for the result."""
        memory, body = self._validate_write(serializers.ObserveBody)
        owner = self._get_owner(memory, body, purpose="")
        outcome = memory.observe(**owner, user_name=request.user.get_username())
        return self.respond(serializers.ObservationOutcomeSerializer.represent(outcome))

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        request=serializers.ReflectSchema,
        responses=describe_responses(serializers.ObservationOutcomeSerializer, 404, 409, 502, 503),
    )
    @action(detail=False, methods=["post"])
    def reflect(self, request: Request) -> HttpResponseBase:
        """Condense the observations now, whatever their size is, and wait for the result."""
        memory, body = self._validate_write(serializers.ReflectBody)
        owner = self._get_owner(memory, body, purpose="")
        outcome = memory.reflect(
            **owner, prompt=body["prompt"], user_name=request.user.get_username()
        )
        return self.respond(serializers.ObservationOutcomeSerializer.represent(outcome))

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        request=serializers.CorrectionSchema,
        responses=describe_responses(serializers.CorrectedSerializer, 404, 409),
    )
    @action(detail=False, methods=["post"])
    def corrections(self, request: Request) -> HttpResponseBase:
        """Edit, pin, unpin or delete one observation, or restore an earlier generation.

        The answer is the new generation, so each correction can be undone by restoring the one
        before it. The status is 409 if the observations have changed since they were read.
        """
        memory, body = self._validate_write(serializers.CorrectionBody)
        about = {
            **self._get_owner(memory, body, purpose=""),
            "user_name": request.user.get_username(),
        }
        record = _CORRECTIONS[body["action"]](memory, body, about)
        return self.respond(serializers.CorrectedSerializer.represent({"record": record}))

    def _validate_write(self, serializer_class: Any) -> tuple[Memory, dict[str, Any]]:
        """Return the memory of the agent in the query, and the validated body."""
        query = self.validate_query(query_strings.AgentQuery)
        body = self.validate_body(serializer_class)
        return _get_memory(query["agentId"]), body

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


_CORRECTIONS: dict[str, Callable[[Memory, dict[str, Any], dict[str, Any]], Any]] = {
    "edit": lambda memory, body, about: memory.edit_observation(
        body["observation"], body["text"], **about
    ),
    "pin": lambda memory, body, about: memory.pin_observation(body["observation"], **about),
    "unpin": lambda memory, body, about: memory.pin_observation(
        body["observation"], pinned=False, **about
    ),
    "delete": lambda memory, body, about: memory.delete_observation(body["observation"], **about),
    "restore": lambda memory, body, about: memory.restore_observations(body["generation"], **about),
}
