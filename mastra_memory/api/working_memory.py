"""Working memory over HTTP."""

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory import jsontext
from mastra_memory.api import documentation as doc
from mastra_memory.api import serializers
from mastra_memory.api.base import MemoryViewSet
from mastra_memory.memory import Memory
from mastra_memory.models import Scope
from mastra_memory.options import MemoryOptions
from mastra_memory.working_memory import empty_value

NOTHING = {
    "workingMemory": None,
    "source": "thread",
    "workingMemoryTemplate": None,
    "threadExists": False,
}


@doc.viewset("working memory")
class WorkingMemoryViewSet(MemoryViewSet):
    """The text kept for a thread or its resource. A scoped caller reaches only its own."""

    @extend_schema(parameters=doc.READ, responses=doc.answers(serializers.WorkingMemory))
    def retrieve(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Read the working memory that a thread's agent would see."""
        self.params.required("agentId")
        memory, known = self.reading_memory()
        if not known:
            return self.answer(NOTHING)
        options = memory.options.merged(self.params.json_object("memoryConfig"))
        owner, exists = self._owner(memory, thread_id, self.params.text("resourceId"))
        by_resource = options.working_memory.scope != Scope.THREAD and owner is not None
        content = memory.get_working_memory(thread_id, resource_id=owner, options=options.raw)
        return self.answer(
            {
                "workingMemory": content,
                "source": "resource" if by_resource else "thread",
                "workingMemoryTemplate": _template(memory, options),
                "threadExists": exists,
            }
        )

    @extend_schema(
        parameters=[doc.AGENT],
        request=serializers.WriteWorkingMemory,
        responses=doc.answers(serializers.Success, 404),
    )
    def update(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Replace the working memory; what it was stays as a revision."""
        memory = self.memory()
        body = serializers.WriteWorkingMemory.read(request.data)
        thread = self.thread(memory, thread_id, _named(body.get("resourceId")))
        memory.update_working_memory(
            thread.id,
            body["workingMemory"],
            resource_id=thread.resource_id,
            options=body.get("memoryConfig"),
            source="api",
            author_id=request.user.pk,
        )
        return self.answer({"success": True})

    def _owner(self, memory: Memory, thread_id: str, given: str | None) -> tuple[str | None, bool]:
        """Whose memory is meant, and whether the thread exists."""
        named = self.caller.owner(_named(given))
        thread = memory.get_thread_by_id(thread_id)
        if thread is None:
            return named, False
        self.caller.check_owner(thread, named)
        return thread.resource_id, True


def _named(resource_id: str | None) -> str | None:
    """The resource named; the npm client sends the word `undefined` for none."""
    return None if resource_id in (None, "", "undefined") else resource_id


def _template(memory: Memory, options: MemoryOptions) -> dict[str, str] | None:
    template = memory.get_working_memory_template(options=options.raw)
    if template is None:
        return None
    content = template.content
    if template.format == "json":
        content = jsontext.dumps(empty_value(options.working_memory.schema))
    return {"format": template.format, "content": content}
