"""Working memory over HTTP."""

from typing import Literal

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request

from mastra_memory.api import answers, serializers, wire
from mastra_memory.api import documentation as doc
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.memory import Memory
from mastra_memory.models import Scope
from mastra_memory.options import MemoryOptions, parse_request_options

NOTHING = {
    "workingMemory": None,
    "source": "thread",
    "workingMemoryTemplate": None,
    "threadExists": False,
}


@doc.viewset("working memory")
class WorkingMemoryViewSet(MemoryViewSet):
    """The text kept for a thread or its resource. A scoped caller reaches only its own."""

    @extend_schema(parameters=doc.READ_MEMORY, responses=doc.responses(answers.WorkingMemory))
    def retrieve(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Read the working memory that a thread's agent would see."""
        self.params.required("agentId")
        memory, known = self.reading_memory()
        if not known:
            return self.answer(NOTHING)
        own = parse_request_options(self.params.json_object("memoryConfig"), memory.options)
        options = memory.options.merged(own)
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
        parameters=[doc.AGENT, doc.MEMORY_MODE],
        request=serializers.WriteWorkingMemory,
        responses=doc.responses(answers.Success, 404),
    )
    def update(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Replace the working memory, or merge JSON into it; what it was stays as a revision.

        An agent with a schema gets only what fits it. The empty template is refused where it
        would wipe something.
        """
        memory = self.memory()
        mode: Literal["replace", "merge"] = self.params.choice("mode", ("replace", "merge"))
        body = serializers.WriteWorkingMemory.read(request.data)
        thread = self.thread(memory, thread_id, _named(body.get("resourceId")))
        memory.update_working_memory(
            thread.id,
            body["workingMemory"],
            resource_id=thread.resource_id,
            options=parse_request_options(body.get("memoryConfig"), memory.options),
            mode=mode,
            source="api",
            author_id=request.user.pk,
        )
        return self.answer({"success": True})

    @extend_schema(
        parameters=doc.REVISIONS,
        responses=doc.responses(answers.RevisionPage, 404),
    )
    @action(detail=True)
    def revisions(self, request: Request, thread_id: str) -> HttpResponseBase:
        """List what the working memory was, newest first, with author and source."""
        memory = self.memory()
        thread = self.thread(memory, thread_id, _named(self.params.text("resourceId")))
        page = memory.list_working_memory_revisions(
            thread.id,
            resource_id=thread.resource_id,
            options=parse_request_options(self.params.json_object("memoryConfig"), memory.options),
            page=self.params.whole("page", 0),
            per_page=self.per_page(20),
        )
        return self.answer(wire.revision_page(page))

    @extend_schema(
        parameters=[doc.AGENT],
        request=serializers.RestoreWorkingMemory,
        responses=doc.responses(answers.Restored, 404),
    )
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Make the working memory what it was at a version; that is a new version too."""
        memory = self.memory()
        body = serializers.RestoreWorkingMemory.read(request.data)
        thread = self.thread(memory, thread_id, _named(body.get("resourceId")))
        version = memory.restore_working_memory(
            thread.id,
            body["version"],
            resource_id=thread.resource_id,
            options=parse_request_options(body.get("memoryConfig"), memory.options),
            source="api",
            author_id=request.user.pk,
        )
        return self.answer({"success": True, "version": version})

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
    return {"format": template.format, "content": template.empty}
