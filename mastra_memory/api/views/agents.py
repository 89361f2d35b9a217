"""The status and the configuration of an agent's memory, over HTTP."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory.api.openapi import describe_responses
from mastra_memory.api.serializers import query_strings, response_bodies
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.db import times
from mastra_memory.exceptions import AgentNotFound, MemoryNotConfigured
from mastra_memory.memory import Memory
from mastra_memory.options import MemoryOptions, ModelTiers, camel_keys


@extend_schema(tags=["agents"])
class StatusViewSet(MemoryViewSet):
    """Whether an agent has memory. Scoped callers see only their own observations."""

    serializer_class = response_bodies.StatusSerializer

    @extend_schema(
        parameters=[query_strings.StatusQuery],
        responses=describe_responses(response_bodies.StatusSerializer),
    )
    def retrieve(self, request: Request) -> HttpResponseBase:
        """Return whether the agent has memory, and how much of it is observed."""
        query = self.validate_query(query_strings.StatusQuery)
        try:
            memory = Memory(query["agentId"])
        except AgentNotFound:
            return self.respond({"result": True})
        except MemoryNotConfigured:
            return self.respond({"result": False})
        data: dict[str, Any] = {"result": True, "memoryType": "local"}
        if memory.options.observational_memory is not None:
            data["observationalMemory"] = self._describe_observations(memory, query)
        return self.respond(data)

    def _describe_observations(self, memory: Memory, query: dict[str, Any]) -> dict[str, Any]:
        if "resourceId" not in query:
            return {"enabled": True}
        resource_id = self.caller.owner(query["resourceId"])
        thread_id = query.get("threadId")
        thread = memory.get_thread_by_id(thread_id) if thread_id else None
        if thread is not None:
            self.caller.check_owner(thread, resource_id)
        record = memory.get_observational_record(thread_id=thread_id, resource_id=resource_id)
        if record is None:
            return {"enabled": True, "hasRecord": False}
        last_observed = record.last_observed_at
        return {
            "enabled": True,
            "hasRecord": True,
            "originType": record.origin_type,
            **({"lastObservedAt": times.format_time(last_observed)} if last_observed else {}),
            "tokenCount": record.total_tokens_observed,
            "observationTokenCount": record.observation_token_count,
            "isObserving": record.is_observing,
            "isReflecting": record.is_reflecting,
        }


@extend_schema(tags=["agents"])
class ConfigViewSet(MemoryViewSet):
    """The options of an agent. They contain no data of any resource."""

    serializer_class = response_bodies.ConfigSerializer

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        responses=describe_responses(response_bodies.ConfigSerializer),
    )
    def retrieve(self, request: Request) -> HttpResponseBase:
        """Return the agent's options with their defaults, or null for an agent without memory."""
        query = self.validate_query(query_strings.AgentQuery)
        try:
            options = Memory(query["agentId"]).options
        except (AgentNotFound, MemoryNotConfigured):
            return self.respond({"config": None})
        return self.respond({"config": _describe_options(options)})


def _describe_options(options: MemoryOptions) -> dict[str, Any]:
    raw = camel_keys(options.raw)
    config = {
        "lastMessages": options.last_messages,
        "semanticRecall": raw.get("semanticRecall", False),
        "generateTitle": raw.get("generateTitle", False),
        "workingMemory": {
            "template": options.working_memory.template,
            **(raw.get("workingMemory") or {}),
            "enabled": options.working_memory.enabled,
        },
        "observationalMemory": _describe_observational_memory(options),
    }
    for name in ("readOnly", "messageHistory"):
        if name in raw:
            config[name] = raw[name]
    return config


def _describe_observational_memory(options: MemoryOptions) -> dict[str, Any]:
    observational = options.observational_memory
    if observational is None:
        return {"enabled": False}
    config: dict[str, Any] = {
        "enabled": True,
        "scope": observational.scope,
        "messageTokens": observational.observation.message_tokens,
        "observationTokens": observational.reflection.observation_tokens,
    }
    if observational.share_token_budget:
        config["shareTokenBudget"] = True
    for part in ("observation", "reflection"):
        model = getattr(observational, part).model
        if isinstance(model, ModelTiers):
            routing = [{"upTo": limit, "model": name} for limit, name in model.limits]
            config[f"{part}ModelRouting"] = routing
        elif model:
            config[f"{part}Model"] = model
    return config
