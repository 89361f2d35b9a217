"""What an agent's memory is: status and configuration."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory.api import answers
from mastra_memory.api import documentation as doc
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.db import times
from mastra_memory.exceptions import AgentNotFound, MemoryNotConfigured
from mastra_memory.memory import Memory
from mastra_memory.options import MemoryOptions, camel_keys


@doc.viewset("agents")
class AgentViewSet(MemoryViewSet):
    """Facts about an agent's memory; nothing of anybody's conversations but the caller's own."""

    @extend_schema(parameters=doc.STATUS, responses=doc.responses(answers.Status))
    def status(self, request: Request) -> HttpResponseBase:
        """Whether the agent has memory, and how far its observations are."""
        try:
            memory = Memory(self.params.required("agentId"))
        except AgentNotFound:
            return self.answer({"result": True})
        except MemoryNotConfigured:
            return self.answer({"result": False})
        body: dict[str, Any] = {"result": True, "memoryType": "local"}
        if memory.options.observational_memory is not None:
            body["observationalMemory"] = self._observations(memory)
        return self.answer(body)

    def _observations(self, memory: Memory) -> dict[str, Any]:
        resource_id = self.caller.owner(self.params.text("resourceId"))
        thread_id = self.params.text("threadId")
        if not self.params.text("resourceId"):
            return {"enabled": True}
        thread = memory.get_thread_by_id(thread_id) if thread_id else None
        if thread is not None:
            self.caller.check_owner(thread, resource_id)
        head = memory.get_observational_record(thread_id=thread_id, resource_id=resource_id)
        if head is None:
            return {"enabled": True, "hasRecord": False}
        seen = head.last_observed_at
        return {
            "enabled": True,
            "hasRecord": True,
            "originType": head.origin_type,
            **({"lastObservedAt": times.format_time(seen)} if seen else {}),
            "tokenCount": head.total_tokens_observed,
            "observationTokenCount": head.observation_token_count,
            "isObserving": head.is_observing,
            "isReflecting": head.is_reflecting,
        }

    @extend_schema(parameters=[doc.AGENT], responses=doc.responses(answers.Config))
    def config(self, request: Request) -> HttpResponseBase:
        """The agent's options, defaults filled in; null for an agent without memory."""
        try:
            options = Memory(self.params.required("agentId")).options
        except (AgentNotFound, MemoryNotConfigured):
            return self.answer({"config": None})
        return self.answer({"config": _config(options)})


def _config(options: MemoryOptions) -> dict[str, Any]:
    raw = camel_keys(options.raw)
    memory = raw.get("workingMemory") or {}
    shown = {
        "lastMessages": options.last_messages,
        "semanticRecall": raw.get("semanticRecall", False),
        "generateTitle": raw.get("generateTitle", False),
        "workingMemory": {
            "template": options.working_memory.template,
            **memory,
            "enabled": options.working_memory.enabled,
        },
        "observationalMemory": _observational_config(options),
    }
    kept = {key: raw[key] for key in ("readOnly", "messageHistory") if key in raw}
    return shown | kept


def _observational_config(options: MemoryOptions) -> dict[str, Any]:
    chosen = options.observational_memory
    if chosen is None:
        return {"enabled": False}
    shown = {
        "enabled": True,
        "scope": chosen.scope,
        "messageTokens": chosen.message_tokens,
        "observationTokens": chosen.observation_tokens,
    }
    models = {
        "observationModel": chosen.observation_model,
        "reflectionModel": chosen.reflection_model,
    }
    return shown | {name: model for name, model in models.items() if model}
