"""The conformance kit's test hooks, added to the routes of the project; used nowhere else."""

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from rest_framework.request import Request

from mastra_memory.api.permissions import resource_of_user
from mastra_memory.db import times
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord
from mastra_memory.types import MessageFilter, MessageSelection, StoredMessage, StoredThread
from project.urls import urlpatterns as project_urls
from tests.support.factories import held_lease

Json = dict[str, Any]
CALLER_HEADER = "X-Conformance-Resource"
LEASE_SECONDS = 86_400


def resource_for_request(request: Request) -> str | None:
    """Bind the caller to the resource of the kit's header; without it to their own, as usual."""
    return request.headers.get(CALLER_HEADER) or resource_of_user(request)


def ping(request: HttpRequest) -> JsonResponse:
    """Say that the hooks are here."""
    return JsonResponse({"control": True})


def hook(act: Callable[[Json], Json]) -> Callable[[HttpRequest], JsonResponse]:
    """Make a view of a function of JSON; its error is answered as the kit expects it."""

    def view(request: HttpRequest) -> JsonResponse:
        try:
            return JsonResponse(act(json.loads(request.body)))
        except Exception as error:  # noqa: BLE001 - the kit wants every error as a text
            return JsonResponse({"error": f"{type(error).__name__}: {error}"}, status=500)

    return csrf_exempt(view)


def store_generations(body: Json) -> Json:
    """Store one observational record for each generation, numbered from 0."""
    owner = {"scope": body["scope"], "resource_id": body["resourceId"]}
    if body["scope"] == "thread":
        owner["thread_id"] = body["threadId"]
    records = [
        ObservationalRecord(generation_count=number, **owner, **_generation(number, generation))
        for number, generation in enumerate(body["generations"])
    ]
    for record, following in pairwise(records):
        record.superseded_by_id = following.id
    ObservationalRecord.objects.bulk_create(records)
    return {"ids": [record.id for record in records]}


def _generation(number: int, generation: Mapping[str, Any]) -> Json:
    created_at = times.parse_time(generation["createdAt"])
    cursor = generation.get("lastObservedAt")
    return {
        "created_at": created_at,
        "updated_at": created_at,
        "last_observed_at": times.parse_time(cursor) if cursor else None,
        "origin_type": generation.get("originType") or ("reflection" if number else "initial"),
        "active_observations": generation.get("activeObservations", ""),
        "total_tokens_observed": generation.get("totalTokensObserved", 0),
        "observation_token_count": generation.get("observationTokenCount", 0),
        "pending_message_tokens": generation.get("pendingMessageTokens", 0),
        **(held_lease("observing", seconds=LEASE_SECONDS) if generation.get("isObserving") else {}),
        **(
            held_lease("reflecting", seconds=LEASE_SECONDS)
            if generation.get("isReflecting")
            else {}
        ),
        "observed_message_ids": generation.get("observedMessageIds"),
        "config": generation.get("config", {}),
        "metadata": generation.get("metadata"),
    }


def clone_thread(body: Json) -> Json:
    """Call `Memory.clone_thread`, which may also clone into another resource."""
    options = body.get("options", {})
    message_filter = options.get("messageFilter", {})
    result = Memory(body["agentId"]).clone_thread(
        body["sourceThreadId"],
        clone_id=body.get("newThreadId"),
        resource_id=body.get("resourceId"),
        title=body.get("title", ""),
        metadata=body.get("metadata"),
        selection=MessageSelection(
            limit=options.get("messageLimit"),
            start=_moment(message_filter, "startDate"),
            end=_moment(message_filter, "endDate"),
            message_ids=message_filter.get("messageIds", ()),
        ),
    )
    return {
        "thread": _thread(result.thread),
        "messageIdMap": result.message_id_map,
        "clonedMessages": [_message(message) for message in result.messages],
    }


def recall(body: Json) -> Json:
    """Call `Memory.recall` with what the body names and nothing else."""
    choices: Json = {}
    for key, name in {
        "resourceId": "resource_id",
        "perPage": "per_page",
        "page": "page",
        "vectorSearchString": "vector_search_string",
    }.items():
        if key in body:
            choices[name] = body[key]
    if "orderBy" in body:
        choices["direction"] = body["orderBy"]["direction"]
    if "filter" in body:
        choices["message_filter"] = _message_filter(body["filter"])
    options = body.get("threadConfig")
    page = Memory(body["agentId"]).recall(body["threadId"], options=options, **choices)
    usage = {"usage": {"tokens": page.usage_tokens}} if page.usage_tokens else {}
    return {
        "messages": [_message(message) for message in page.messages],
        "total": page.total,
        "page": page.page,
        "perPage": page.per_page,
        "hasMore": page.has_more,
        **usage,
    }


def _message_filter(given: Mapping[str, Any]) -> MessageFilter:
    span = given.get("dateRange", {})
    return MessageFilter(
        start=_moment(span, "start"),
        end=_moment(span, "end"),
        start_exclusive=span.get("startExclusive", False),
        end_exclusive=span.get("endExclusive", False),
        metadata=given.get("metadata", {}),
    )


def _moment(given: Mapping[str, Any], key: str) -> Any:
    return times.parse_time(given[key]) if given.get(key) is not None else None


def _thread(thread: StoredThread) -> Json:
    return {
        "id": thread.id,
        "resourceId": thread.resource_id,
        "title": thread.title,
        "metadata": thread.metadata,
        "createdAt": times.format_time(thread.created_at),
        "updatedAt": times.format_time(thread.updated_at),
    }


def _message(message: StoredMessage) -> Json:
    type_ = {} if message.type == "v2" else {"type": message.type}
    return {
        "id": message.id,
        "threadId": message.thread_id,
        "resourceId": message.resource_id,
        "role": message.role,
        "content": message.content,
        "createdAt": times.format_time(message.created_at),
        **type_,
    }


urlpatterns = [
    path("_control/ping", ping),
    path("_control/observational-memory", hook(store_generations)),
    path("_control/clone-thread", hook(clone_thread)),
    path("_control/recall", hook(recall)),
    *project_urls,
]
