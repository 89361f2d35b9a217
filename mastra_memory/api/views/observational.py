"""Observational memory over HTTP: the record, its history, waiting for what is prepared."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory.api import answers, serializers, wire
from mastra_memory.api import documentation as doc
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.exceptions import FeatureDisabled, InvalidInput, Issue, MemoryNotConfigured
from mastra_memory.memory import Memory


@doc.viewset("observational memory")
class ObservationalMemoryViewSet(MemoryViewSet):
    """What was noted about a thread or a resource. A scoped caller reaches only its own."""

    @extend_schema(parameters=doc.OBSERVATIONS, responses=doc.responses(answers.Observations))
    def retrieve(self, request: Request) -> HttpResponseBase:
        """The live record, and the generations before it, newest first."""
        memory = self._observing(self.params.required("agentId"))
        about = self._about(
            memory, self.params.text("resourceId"), self.params.text("threadId"), " lookup"
        )
        record = memory.get_observational_record(**about)
        history = memory.list_observational_history(
            **about,
            start=self.params.moment("from"),
            end=self.params.moment("to"),
            offset=self.params.whole("offset", 0),
            limit=self.params.whole("limit", 5, minimum=1),
        )
        body: dict[str, Any] = {"record": wire.record(record) if record else None}
        if history:
            body["history"] = [wire.record(value) for value in history]
        return self.answer(body)

    @extend_schema(
        request=serializers.DocumentedBufferStatus,
        responses=doc.responses(answers.Observations),
    )
    def buffer_status(self, request: Request) -> HttpResponseBase:
        """The live record once nothing is being buffered, after at most 30 seconds."""
        body = serializers.BufferStatus.read(request.data)
        memory = self._observing(body["agentId"])
        about = self._about(memory, body.get("resourceId"), body.get("threadId"), "")
        record = memory.wait_for_buffering(**about)
        return self.answer({"record": wire.record(record) if record else None})

    def _observing(self, agent_id: str) -> Memory:
        try:
            memory = Memory(agent_id)
        except MemoryNotConfigured:
            raise FeatureDisabled("Observational Memory is not enabled for this agent") from None
        if memory.options.observational_memory is None:
            raise FeatureDisabled("Observational Memory is not enabled for this agent")
        return memory

    def _about(
        self, memory: Memory, named: str | None, thread_id: str | None, purpose: str
    ) -> dict[str, Any]:
        """What the record is about; a thread must belong to the resource named."""
        resource_id = self.caller.owner(named)
        if resource_id is None:
            reason = "is required for observational memory" + purpose
            raise InvalidInput(f"resourceId {reason}", [Issue("resourceId", reason)])
        thread = memory.get_thread_by_id(thread_id) if thread_id else None
        if thread is not None:
            self.caller.check_owner(thread, resource_id)
        return {"thread_id": thread_id, "resource_id": resource_id}
