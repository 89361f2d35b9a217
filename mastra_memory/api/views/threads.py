"""Threads over HTTP: list, create, read, change, delete, clone, transfer."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from mastra_memory.api import answers, serializers, wire
from mastra_memory.api import documentation as doc
from mastra_memory.api.filters import narrowed_threads
from mastra_memory.api.permissions import HasResource, IsUnscoped
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.exceptions import ThreadNotFound
from mastra_memory.types import MessageSelection


@doc.viewset("threads")
class ThreadViewSet(MemoryViewSet):
    """Conversations. A scoped caller reaches only its own."""

    @extend_schema(parameters=doc.LIST_THREADS, responses=doc.responses(answers.ThreadPage))
    def list(self, request: Request) -> HttpResponseBase:
        """List threads, newest first.

        A scoped caller gets its own, whatever `resourceId` says. Without `resourceId` an unscoped
        caller gets everybody's.
        """
        memory, _ = self.reading_memory()
        order = self.params.order(("createdAt", "updatedAt"), legacy=True) or ("createdAt", None)
        page = memory.list_threads(
            resource_id=self.caller.owner(self.params.text("resourceId")),
            metadata=self.params.metadata(),
            within=narrowed_threads(request),
            page=self.params.whole("page", 0),
            per_page=self.per_page(100),
            order_by="updated_at" if order[0] == "updatedAt" else "created_at",
            direction=order[1] or "DESC",
        )
        return self.answer(wire.thread_page(page))

    @extend_schema(
        parameters=[doc.AGENT],
        request=serializers.CreateThread,
        responses=doc.responses(answers.Thread, 409),
    )
    def create(self, request: Request) -> HttpResponseBase:
        """Create a thread; one that the resource has already comes back unchanged."""
        memory = self.memory()
        body = serializers.CreateThread.read(request.data)
        thread = memory.create_thread(
            self.caller.resource_id or body["resourceId"],
            thread_id=body.get("threadId"),
            title=body.get("title", ""),
            metadata=body.get("metadata"),
        )
        return self.answer(wire.thread(thread, bare=True))

    @extend_schema(parameters=doc.READ, responses=doc.responses(answers.Thread, 404))
    def retrieve(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Read a thread, through an agent or from the storage alone."""
        memory, _ = self.reading_memory()
        thread = self.thread(memory, thread_id, self.params.text("resourceId"))
        return self.answer(wire.thread(thread))

    @extend_schema(
        parameters=[doc.AGENT, doc.METADATA_MODE],
        request=serializers.UpdateThread,
        responses=doc.responses(answers.Thread, 404),
    )
    def partial_update(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Change title or metadata.

        Metadata replaces what was there, except the keys that the memory itself uses; with
        `metadataMode=merge` it is merged key by key.
        """
        memory = self.memory()
        body = serializers.UpdateThread.read(request.data)
        mode = self.params.choice("metadataMode", ("replace", "merge"))
        self.thread(memory, thread_id, body.get("resourceId"))
        thread = memory.update_thread(
            thread_id,
            title=body.get("title"),
            metadata=body.get("metadata"),
            replace_metadata=mode == "replace",
        )
        return self.answer(wire.thread(thread))

    @extend_schema(parameters=doc.WRITE, responses=doc.responses(answers.DeletedThread, 404))
    def destroy(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Delete a thread with all that hangs on it."""
        memory = self.memory()
        self.thread(memory, thread_id, self.params.text("resourceId"))
        memory.delete_thread(thread_id)
        return self.answer({"result": "Thread deleted"})

    @extend_schema(
        parameters=[doc.AGENT],
        request=serializers.CloneThread,
        responses=doc.responses(answers.CloneResult, 404, 409),
    )
    @action(detail=True, methods=["post"])
    def clone(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Copy a thread within its resource, all of it or the messages chosen."""
        memory = self.memory()
        body = serializers.CloneThread.read(request.data)
        try:
            source = memory.get_thread(thread_id)
        except ThreadNotFound:
            raise ThreadNotFound("Source thread not found") from None
        self.caller.check_owner(source, body.get("resourceId"))
        result = memory.clone_thread(
            thread_id,
            clone_id=body.get("newThreadId"),
            title=body.get("title", ""),
            metadata=body.get("metadata"),
            selection=_selection(body.get("options") or {}),
            shape=wire.message_json,
        )
        facts = {
            "thread": wire.thread(result.thread, bare=True),
            "messageIdMap": result.message_id_map,
        }
        return self.answer_with_list(facts, "clonedMessages", result.messages)

    @extend_schema(request=serializers.TransferThread, responses=doc.responses(answers.Thread, 404))
    @action(
        detail=True,
        methods=["post"],
        permission_classes=[IsAuthenticated, HasResource, IsUnscoped],
    )
    def transfer(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Give a thread to another resource. Only for callers who are not bound to one."""
        memory, _ = self.reading_memory()
        body = serializers.TransferThread.read(request.data)
        return self.answer(wire.thread(memory.transfer_thread(thread_id, body["resourceId"])))


def _selection(options: dict[str, Any]) -> MessageSelection:
    chosen = options.get("messageFilter") or {}
    return MessageSelection(
        limit=options.get("messageLimit"),
        start=chosen.get("startDate"),
        end=chosen.get("endDate"),
        message_ids=chosen.get("messageIds") or (),
    )
