"""Threads over HTTP: list, create, read, change, delete, clone and transfer."""

from functools import partial
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from mastra_memory import conf
from mastra_memory.api.filters import MemoryFilterBackend, ThreadFilter
from mastra_memory.api.openapi import describe_responses
from mastra_memory.api.pagination import ThreadPagination
from mastra_memory.api.permissions import HasResource, IsUnscoped
from mastra_memory.api.serializers import bodies, query_strings, response_bodies
from mastra_memory.api.views.base import MemoryViewSet
from mastra_memory.exceptions import ThreadNotFound
from mastra_memory.memory import Memory
from mastra_memory.types import MessageSelection, StoredMessage


class _BoundedRenderer:
    """Render messages of a clone until they reach a number of bytes, and later ones as `b""`.

    All messages are cloned. Only the answer is bounded, as a page of messages is.
    """

    def __init__(self, max_bytes: int) -> None:
        self._bytes_left = max_bytes

    def __call__(self, message: StoredMessage) -> bytes:
        if self._bytes_left <= 0:
            return b""
        rendered = response_bodies.render_message(message)
        self._bytes_left -= len(rendered)
        return rendered


@extend_schema(tags=["threads"])
class ThreadViewSet(MemoryViewSet):
    """Threads. Scoped callers reach only their own."""

    serializer_class = response_bodies.ThreadSerializer
    pagination_class = ThreadPagination
    filter_backends = (MemoryFilterBackend,)
    filterset_class = ThreadFilter

    @extend_schema(
        parameters=[query_strings.ThreadListQuery],
        responses=describe_responses(response_bodies.ThreadSerializer(many=True)),
    )
    def list(self, request: Request) -> HttpResponseBase:
        """List threads, newest first.

        Scoped callers always get their own threads; `resourceId` is ignored. Unscoped callers get
        the threads of all resources if `resourceId` is missing.
        """
        query = self.validate_query(query_strings.ThreadListQuery)
        memory, _ = self.get_read_memory(query.get("agentId"))
        field, direction = query.get("orderBy", ("createdAt", None))
        all_threads = self.get_queryset()
        threads = self.filter_queryset(all_threads)
        read_page = partial(
            memory.list_threads,
            resource_id=self.caller.owner(query.get("resourceId")),
            metadata=query.get("metadata"),
            within=None if threads is all_threads else threads,
            order_by="updated_at" if field == "updatedAt" else "created_at",
            direction=direction or "DESC",
        )
        page = self.paginate_queryset(read_page)
        response: HttpResponseBase = self.get_paginated_response(
            response_bodies.ThreadSerializer.represent_list(page)
        )
        return response

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        request=bodies.CreateThreadBody,
        responses=describe_responses(response_bodies.NewThreadSerializer, 409),
    )
    def create(self, request: Request) -> HttpResponseBase:
        """Create a thread. If the resource already has a thread with this id, it is returned."""
        query = self.validate_query(query_strings.AgentQuery)
        memory = Memory(query["agentId"])
        body = self.validate_body(bodies.CreateThreadBody)
        thread = memory.create_thread(
            self.caller.resource_id or body["resourceId"],
            thread_id=body.get("threadId"),
            title=body.get("title", ""),
            metadata=body.get("metadata"),
        )
        return self.respond(response_bodies.NewThreadSerializer.represent(thread))

    @extend_schema(
        parameters=[query_strings.ReadThreadQuery],
        responses=describe_responses(response_bodies.ThreadSerializer, 404),
    )
    def retrieve(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Read a thread."""
        query = self.validate_query(query_strings.ReadThreadQuery)
        memory, _ = self.get_read_memory(query.get("agentId"))
        thread = self.get_thread(memory, thread_id, query.get("resourceId"))
        return self.respond(response_bodies.ThreadSerializer.represent(thread))

    @extend_schema(
        parameters=[query_strings.UpdateThreadQuery],
        request=bodies.UpdateThreadBody,
        responses=describe_responses(response_bodies.ThreadSerializer, 404),
    )
    def partial_update(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Change the title or the metadata of a thread.

        New metadata replaces the old one, except for the keys that the memory itself uses. With
        `metadataMode=merge` it is merged key by key.
        """
        query = self.validate_query(query_strings.UpdateThreadQuery)
        memory = Memory(query["agentId"])
        body = self.validate_body(bodies.UpdateThreadBody)
        self.get_thread(memory, thread_id, body.get("resourceId"))
        thread = memory.update_thread(
            thread_id,
            title=body.get("title"),
            metadata=body.get("metadata"),
            replace_metadata=query["metadataMode"] == "replace",
        )
        return self.respond(response_bodies.ThreadSerializer.represent(thread))

    @extend_schema(
        parameters=[query_strings.DeleteQuery],
        responses=describe_responses(response_bodies.DeletedThreadSerializer, 404),
    )
    def destroy(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Delete a thread with its messages, working memory and observations."""
        query = self.validate_query(query_strings.DeleteQuery)
        memory = Memory(query["agentId"])
        self.get_thread(memory, thread_id, query.get("resourceId"))
        memory.delete_thread(thread_id)
        return self.respond({"result": "Thread deleted"})

    @extend_schema(
        parameters=[query_strings.AgentQuery],
        request=bodies.CloneThreadBody,
        responses=describe_responses(response_bodies.CloneResultSerializer, 404, 409),
    )
    @action(detail=True, methods=["post"], pagination_class=None, filter_backends=())
    def clone(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Copy a thread within its resource, with all messages or a selection of them."""
        query = self.validate_query(query_strings.AgentQuery)
        memory = Memory(query["agentId"])
        body = self.validate_body(bodies.CloneThreadBody)
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
            selection=_make_selection(body.get("options") or {}),
            convert=_BoundedRenderer(conf.app_settings().MAX_PAGE_BYTES),
        )
        messages = [message for message in result.messages if message]
        data: dict[str, Any] = {
            "thread": response_bodies.NewThreadSerializer.represent(result.thread),
            "messageIdMap": result.message_id_map,
        }
        if len(messages) < len(result.messages):
            data["hasMore"] = True
        return self.respond_with_list(data, "clonedMessages", messages)

    @extend_schema(
        parameters=[query_strings.OptionalAgentQuery],
        request=bodies.TransferThreadBody,
        responses=describe_responses(response_bodies.ThreadSerializer, 404),
    )
    @action(
        detail=True,
        methods=["post"],
        permission_classes=[IsAuthenticated, HasResource, IsUnscoped],
    )
    def transfer(self, request: Request, thread_id: str) -> HttpResponseBase:
        """Move a thread to another resource. Scoped callers may not do this."""
        query = self.validate_query(query_strings.OptionalAgentQuery)
        memory, _ = self.get_read_memory(query.get("agentId"))
        body = self.validate_body(bodies.TransferThreadBody)
        thread = memory.transfer_thread(thread_id, body["resourceId"])
        return self.respond(response_bodies.ThreadSerializer.represent(thread))


def _make_selection(options: dict[str, Any]) -> MessageSelection:
    message_filter = options.get("messageFilter") or {}
    return MessageSelection(
        limit=options.get("messageLimit"),
        start=message_filter.get("startDate"),
        end=message_filter.get("endDate"),
        message_ids=message_filter.get("messageIds") or (),
    )
