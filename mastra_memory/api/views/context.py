"""The context of an agent's next turn, over HTTP."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory import conf
from mastra_memory.api.openapi import describe_responses
from mastra_memory.api.serializers import bodies, query_strings, response_bodies
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.memory import Memory
from mastra_memory.options import MemoryOptions, merge_options, parse_request_options


@extend_schema(tags=["context"])
class ContextViewSet(MemoryViewSet):
    """The context of a thread. Scoped callers reach only their own threads."""

    serializer_class = response_bodies.ContextSerializer

    @extend_schema(
        parameters=[query_strings.ContextQuery],
        responses=describe_responses(response_bodies.ContextSerializer, 404),
    )
    def retrieve(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Read the context that an agent passes to its model.

        The response contains text for the system prompt (working memory, observations, and
        messages recalled from other threads) and messages (the history, then the new ones). No
        message appears twice. Each block has its number of tokens. Stored text is escaped, so that
        it cannot close the tags around it. If the resource is given, the thread need not exist.
        """
        query = self.validate_query(query_strings.ContextQuery)
        new_messages = list(query.get("newMessages", ()))
        if "query" in query:
            new_messages.append(query["query"])
        return self._respond(
            query["agentId"],
            thread_id,
            new_messages=new_messages,
            resource_id=query.get("resourceId"),
            config=query.get("memoryConfig"),
        )

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        request=bodies.ContextBody,
        responses=describe_responses(response_bodies.ContextSerializer, 404),
    )
    def update(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Read the context for new messages that are too long for a URL. Nothing is stored."""
        query = self.validate_query(query_strings.AgentQuery)
        body = self.validate_body(bodies.ContextBody)
        return self._respond(
            query["agentId"],
            thread_id,
            new_messages=body.get("newMessages", []),
            resource_id=body.get("resourceId"),
            config=body.get("memoryConfig"),
        )

    def _respond(
        self,
        agent_id: str,
        thread_id: str,
        *,
        new_messages: list[Any],
        resource_id: str | None,
        config: dict[str, Any] | None,
    ) -> HttpResponseBase:
        memory = Memory(agent_id)
        owner = self.caller.owner(resource_id)
        if owner is None:
            owner = memory.get_thread(thread_id).resource_id
        overrides = parse_request_options(config, memory.options) or {}
        options = merge_options(overrides, self._limit_options(memory.options.merged(overrides)))
        context = memory.context(
            thread_id, resource_id=owner, new_messages=new_messages, options=options or None
        )
        return self.respond(response_bodies.ContextSerializer.represent(context))

    def _limit_options(self, options: MemoryOptions) -> dict[str, Any]:
        """Return options that limit scoped callers to `MAX_PER_PAGE` messages."""
        limit = conf.app_settings().MAX_PER_PAGE
        if not self.caller.is_scoped:
            return {}
        limited: dict[str, Any] = {}
        if int(options.last_messages) > limit:
            limited["last_messages"] = limit
        recall = options.semantic_recall
        if recall and recall.top_k * (1 + recall.before + recall.after) > limit:
            top_k = min(recall.top_k, limit)
            neighbours = (limit // top_k - 1) // 2
            message_range = {
                "before": min(recall.before, neighbours),
                "after": min(recall.after, neighbours),
            }
            limited["semantic_recall"] = {"top_k": top_k, "message_range": message_range}
        return limited
