"""Messages over HTTP: list, save and delete."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request

from mastra_memory.api.openapi import describe_responses
from mastra_memory.api.pagination import MessagePagination
from mastra_memory.api.serializers import bodies, query_strings, response_bodies
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.exceptions import AccessDenied
from mastra_memory.memory import Memory
from mastra_memory.models import Message


@extend_schema(tags=["messages"])
class ThreadMessageViewSet(MemoryViewSet):
    """The messages of a thread. Scoped callers reach only their own threads."""

    serializer_class = response_bodies.MessageSerializer
    pagination_class = MessagePagination

    @extend_schema(
        parameters=[query_strings.MessageListQuery],
        responses=describe_responses(response_bodies.MessageSerializer(many=True), 404),
    )
    def list(self, request: Request, thread_id: str) -> HttpResponseBase:
        """List a thread's messages.

        With an agent, page 0 contains the newest messages, oldest first, and system reminders are
        hidden. Without an agent, page 0 contains the oldest messages. `orderBy` overrides both.
        """
        query = self.validate_query(query_strings.MessageListQuery)
        memory, has_agent = self.get_read_memory(query.get("agentId"))
        order, message_filter = query.get("orderBy"), query.get("filter")
        limit = self.max_page_size
        read_page = partial(
            memory.list_messages,
            thread_id,
            resource_id=self.caller.owner(query.get("resourceId")),
            direction=(order[1] or "ASC") if order else None,
            newest_page=has_agent,
            message_filter=(
                None
                if message_filter is None
                else query_strings.make_message_filter(message_filter)
            ),
            include=[
                replace(entry, before=min(entry.before, limit), after=min(entry.after, limit))
                for entry in query.get("include", ())
            ],
            include_system_reminders=query["includeSystemReminders"] or not has_agent,
        )
        page = self.paginate_queryset(read_page)
        response: HttpResponseBase = self.get_paginated_response(
            response_bodies.MessageSerializer.represent_list(page)
        )
        return response


@extend_schema(tags=["messages"])
class MessageViewSet(MemoryViewSet):
    """Messages of any threads. Scoped callers reach only those of their own threads."""

    serializer_class = response_bodies.MessageSerializer

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        request=bodies.SaveMessagesBody,
        responses=describe_responses(response_bodies.SavedMessagesSerializer, 404, 409),
    )
    @action(detail=False, methods=["post"], url_path="save-messages")
    def save(self, request: Request) -> HttpResponseBase:
        """Insert or replace messages. If one of them is invalid, none is saved."""
        query = self.validate_query(query_strings.AgentQuery)
        memory = Memory(query["agentId"])
        batch = self.validate_body(bodies.SaveMessagesBody)["messages"]
        for message in batch:
            owner = message.get("resourceId") if isinstance(message, dict) else None
            if owner and self.caller.owner(owner) != owner:
                raise AccessDenied("Access denied: cannot save messages for a different resource")
        saved = memory.save_messages(batch)
        return self.respond(response_bodies.SavedMessagesSerializer.represent(saved))

    @extend_schema(
        parameters=[query_strings.DeleteQuery],
        request=bodies.DeleteMessagesBody,
        responses=describe_responses(response_bodies.DeletedMessagesSerializer),
    )
    @action(detail=False, methods=["post"], url_path="messages/delete")
    def remove(self, request: Request) -> HttpResponseBase:
        """Delete messages by id. The response contains the number of messages that existed."""
        query = self.validate_query(query_strings.DeleteQuery)
        memory = Memory(query["agentId"])
        ids = self.validate_body(bodies.DeleteMessagesBody)["messageIds"]
        owner = self.caller.owner(query.get("resourceId"))
        if owner is not None:
            _check_owner(ids, owner)
        count = memory.delete_messages(ids, resource_id=owner)
        noun = "message" if count == 1 else "messages"
        return self.respond({"success": True, "message": f"{count} {noun} deleted successfully"})


def _check_owner(ids: Sequence[str], owner: str) -> None:
    # The contents of the messages are not read: ten thousand messages may hold gigabytes.
    if Message.objects.filter(pk__in=ids).exclude(resource_id=owner).exists():
        raise AccessDenied
