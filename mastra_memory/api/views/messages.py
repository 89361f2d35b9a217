"""Messages over HTTP: list, save, delete."""

from collections.abc import Sequence

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from mastra_memory.api import answers, serializers, wire
from mastra_memory.api import documentation as doc
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.exceptions import AccessDenied
from mastra_memory.models import Message


@doc.viewset("messages")
class MessageViewSet(MemoryViewSet):
    """The messages of threads. A scoped caller reaches only those of its own threads."""

    @extend_schema(parameters=doc.LIST_MESSAGES, responses=doc.responses(answers.MessagePage, 404))
    def list(self, request: Request, thread_id: str) -> HttpResponseBase:
        """List a thread's messages.

        Through an agent, page 0 holds the newest messages, oldest first, and system reminders are
        hidden; without one it holds the oldest messages. `orderBy` overrides both.
        """
        memory, through_agent = self.reading_memory()
        order = self.params.order(("createdAt",))
        page = memory.list_messages(
            thread_id,
            resource_id=self.caller.owner(self.params.text("resourceId")),
            page=self.params.whole("page", 0),
            per_page=self.per_page(40),
            direction=(order[1] or "ASC") if order else None,
            newest_page=through_agent,
            message_filter=self.params.message_filter(),
            include=self.params.includes(self.largest_page()),
            include_system_reminders=self.params.flag("includeSystemReminders")
            or not through_agent,
        )
        return self.answer(wire.message_page(page) | {"uiMessages": None})

    @extend_schema(
        parameters=[doc.AGENT],
        request=serializers.SaveMessages,
        responses=doc.responses(answers.SavedMessages, 404, 409),
    )
    def save(self, request: Request) -> HttpResponseBase:
        """Insert or replace messages, all or none."""
        memory = self.memory()
        batch = serializers.SaveMessages.read(request.data)["messages"]
        for message in batch:
            owner = message.get("resourceId") if isinstance(message, dict) else None
            if owner and self.caller.owner(owner) != owner:
                raise AccessDenied("Access denied: cannot save messages for a different resource")
        saved = memory.save_messages(batch)
        body = {"messages": [wire.message(message) for message in saved.messages]}
        return self.answer(body | wire.usage(saved.usage_tokens))

    @extend_schema(
        parameters=doc.WRITE,
        request=serializers.DeleteMessages,
        responses=doc.responses(answers.DeletedMessages),
    )
    def remove(self, request: Request) -> HttpResponseBase:
        """Delete messages by id; the answer counts those that existed."""
        memory = self.memory()
        ids = serializers.DeleteMessages.read(request.data)["messageIds"]
        owner = self.caller.owner(self.params.text("resourceId"))
        if owner is not None:
            self._check_owner(ids, owner)
        count = memory.delete_messages(ids, resource_id=owner)
        noun = "message" if count == 1 else "messages"
        return self.answer({"success": True, "message": f"{count} {noun} deleted successfully"})

    def _check_owner(self, ids: Sequence[str], owner: str) -> None:
        # Their contents are not read: ten thousand messages may hold gigabytes.
        if Message.objects.filter(pk__in=ids).exclude(resource_id=owner).exists():
            raise AccessDenied
