"""What goes in front of a model, over HTTP."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory import conf
from mastra_memory.api import answers, serializers, wire
from mastra_memory.api import documentation as doc
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.options import MemoryOptions, merge_options, parse_request_options


@doc.viewset("context")
class ContextViewSet(MemoryViewSet):
    """Everything for an agent's next turn. A scoped caller reaches only its own threads."""

    @extend_schema(parameters=doc.CONTEXT, responses=doc.responses(answers.Context, 404))
    def retrieve(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Read what to put in front of the model.

        Text for the system prompt (working memory, observations, what was recalled from other
        conversations) and messages (history, then the new ones), no message twice, with token
        counts by block. Stored text cannot leave the tags it is set between. The thread need not
        exist yet if the resource is known.
        """
        said = self.params.text("query")
        new = self.params.json_list("newMessages") + ([said] if said else [])
        return self._answer(
            thread_id, new, self.params.text("resourceId"), self.params.json_object("memoryConfig")
        )

    @extend_schema(
        parameters=[doc.AGENT],
        request=serializers.ReadContext,
        responses=doc.responses(answers.Context, 404),
    )
    def read(self, request: Request, thread_id: str) -> HttpResponseBase:
        """The same for new messages that are too long for an address."""
        body = serializers.ReadContext.read(request.data)
        return self._answer(
            thread_id,
            body.get("newMessages", []),
            body.get("resourceId"),
            body.get("memoryConfig"),
        )

    def _answer(
        self, thread_id: str, new: list[Any], named: str | None, config: dict[str, Any] | None
    ) -> HttpResponseBase:
        memory = self.memory()
        owner = self.caller.owner(named)
        if owner is None:
            owner = memory.get_thread(thread_id).resource_id
        given = parse_request_options(config, memory.options) or {}
        options = merge_options(given, self._bounds(memory.options.merged(given)))
        context = memory.context(
            thread_id, resource_id=owner, new_messages=new, options=options or None
        )
        return self.answer(wire.context(context))

    def _bounds(self, options: MemoryOptions) -> dict[str, Any]:
        """Options that keep a scoped caller from reading more at once than a page may hold."""
        most = conf.app_settings().MAX_PER_PAGE
        if not self.caller.is_scoped:
            return {}
        bounds: dict[str, Any] = {}
        if int(options.last_messages) > most:
            bounds["last_messages"] = most
        recall = options.semantic_recall
        if recall and recall.top_k * (1 + recall.before + recall.after) > most:
            top_k = min(recall.top_k, most)
            beside = (most // top_k - 1) // 2
            span = {"before": min(recall.before, beside), "after": min(recall.after, beside)}
            bounds["semantic_recall"] = {"top_k": top_k, "message_range": span}
        return bounds
