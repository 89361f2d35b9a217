"""Answers as schemas: what the documentation shows. `wire.py` builds them, without a detour."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from mastra_memory.api.serializers import JsonObject, Moment, Text, Whole


class Thread(serializers.Serializer[Any]):
    id = Text()
    resourceId = Text()
    title = Text()
    metadata = JsonObject(allow_null=True, required=False)
    createdAt = Moment()
    updatedAt = Moment()


class Message(serializers.Serializer[Any]):
    id = Text()
    threadId = Text()
    resourceId = Text()
    role = serializers.ChoiceField(["user", "assistant", "tool", "signal"])
    content = JsonObject()
    createdAt = Moment()
    type = Text(required=False)


class Page(serializers.Serializer[Any]):
    total = Whole()
    page = Whole()
    perPage = Whole()
    hasMore = serializers.BooleanField()


@extend_schema_serializer(many=False)  # the answer of a `list`, and yet one object
class ThreadPage(Page):
    threads = Thread(many=True)


@extend_schema_serializer(many=False)
class MessagePage(Page):
    messages = Message(many=True)
    uiMessages = JsonObject(allow_null=True)


class SavedMessages(serializers.Serializer[Any]):
    messages = Message(many=True)


class CloneResult(serializers.Serializer[Any]):
    thread = Thread()
    clonedMessages = Message(many=True)
    messageIdMap = serializers.DictField(child=Text())


class DeletedThread(serializers.Serializer[Any]):
    result = Text()


class DeletedMessages(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = Text()


class WorkingMemoryTemplate(serializers.Serializer[Any]):
    format = serializers.ChoiceField(["markdown", "json"])
    content = Text()


class WorkingMemory(serializers.Serializer[Any]):
    workingMemory = Text(allow_null=True)
    source = serializers.ChoiceField(["thread", "resource"])  # type: ignore[assignment]
    workingMemoryTemplate = WorkingMemoryTemplate(allow_null=True)
    threadExists = serializers.BooleanField()


class Revision(serializers.Serializer[Any]):
    version = Whole()
    workingMemory = Text()
    source = Text()  # type: ignore[assignment]
    author = Text(allow_null=True)
    createdAt = Moment()


@extend_schema_serializer(many=False)
class RevisionPage(serializers.Serializer[Any]):
    revisions = Revision(many=True)
    total = Whole()
    page = Whole()
    perPage = Whole()
    hasMore = serializers.BooleanField()


class Restored(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    version = Whole()


class SearchedMessage(serializers.Serializer[Any]):
    id = Text()
    role = Text()
    content = Text()
    createdAt = Moment()


class SearchContext(serializers.Serializer[Any]):
    before = SearchedMessage(many=True)
    after = SearchedMessage(many=True)


class SearchHit(SearchedMessage):
    threadId = Text()
    threadTitle = Text()
    context = SearchContext(required=False)  # type: ignore[assignment]
    score = serializers.FloatField(required=False)
    snippet = Text(required=False)


@extend_schema_serializer(many=False)
class SearchResult(serializers.Serializer[Any]):
    results = SearchHit(many=True)
    count = Whole()
    query = Text()
    searchScope = Text(help_text="`thread` or `resource`.")
    searchType = serializers.ChoiceField(["semantic", "text", "hybrid"])


class Observations(serializers.Serializer[Any]):
    record = JsonObject(allow_null=True)
    history = serializers.ListField(child=JsonObject(), required=False)


class Status(serializers.Serializer[Any]):
    result = serializers.BooleanField()
    memoryType = Text(required=False)
    observationalMemory = JsonObject(required=False)


class Config(serializers.Serializer[Any]):
    config = JsonObject(allow_null=True)


class ContextBlock(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(
        ["workingMemory", "observations", "remembered", "history", "new"]
    )
    text = Text(required=False)
    messageIds = serializers.ListField(child=Text(), required=False)
    tokens = Whole()


class Context(serializers.Serializer[Any]):
    threadId = Text()
    resourceId = Text()
    systemMessage = Text(allow_null=True)
    messages = Message(many=True)
    blocks = ContextBlock(many=True)
    tokens = Whole()
    hasObservations = serializers.BooleanField()
    omRecord = JsonObject(allow_null=True)


class Success(serializers.Serializer[Any]):
    success = serializers.BooleanField()


class ErrorIssue(serializers.Serializer[Any]):
    field = Text()
    message = Text()


class Error(serializers.Serializer[Any]):
    error = Text()
    issues = ErrorIssue(many=True, required=False)
