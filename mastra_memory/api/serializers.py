"""Request bodies and answers as schemas: what is checked, and what the documentation shows.

Fields are strict: a number is no text, and null is nothing but null. Answers are not built by
these serializers (`wire.py` does that, without a detour); they describe them.
"""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from mastra_memory import times
from mastra_memory.api.errors import flatten
from mastra_memory.exceptions import InvalidInput
from mastra_memory.sql import MAX_PAGE


@extend_schema_field(OpenApiTypes.STR)
class Text(serializers.Field):
    """Text of any length, kept as it is sent."""

    default_error_messages = {"invalid": "expected text", "blank": "may not be empty"}

    def __init__(self, *, blank: bool = True, **options: Any) -> None:
        self.blank = blank
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if not data and not self.blank:
            self.fail("blank")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(OpenApiTypes.OBJECT)
class JsonObject(serializers.Field):
    """An object with any content."""

    default_error_messages = {"invalid": "expected an object"}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(OpenApiTypes.INT)
class Whole(serializers.Field):
    """A whole number."""

    default_error_messages = {"invalid": "expected a whole number"}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        if not -MAX_PAGE <= data <= MAX_PAGE or data != int(data):
            self.fail("invalid")
        return int(data)

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(OpenApiTypes.DATETIME)
class Moment(serializers.Field):
    """ISO 8601 text or epoch milliseconds."""

    default_error_messages = {"invalid": "expected a date"}

    def to_internal_value(self, data: Any) -> Any:
        try:
            return times.parse(data)
        except ValueError:
            self.fail("invalid")

    def to_representation(self, value: Any) -> Any:
        return value


class Body(serializers.Serializer[Any]):
    """A request body."""

    default_error_messages = {"invalid": "expected an object"}

    @classmethod
    def read(cls, data: Any) -> dict[str, Any]:
        """The checked body. Raises `InvalidInput` naming every faulty field."""
        body = cls(data=data)
        if not body.is_valid():
            issues = list(flatten(body.errors))
            first = f"{issues[0].field}: {issues[0].message}"
            raise InvalidInput(f"Invalid request body: {first}", issues)
        return dict(body.validated_data)


class CreateThread(Body):
    resourceId = Text()
    threadId = Text(required=False)
    title = Text(required=False)
    metadata = JsonObject(required=False)


class UpdateThread(Body):
    title = Text(required=False)
    metadata = JsonObject(required=False)
    resourceId = Text(required=False)


class MessageFilterInput(Body):
    startDate = Moment(required=False, allow_null=True)
    endDate = Moment(required=False, allow_null=True)
    messageIds = serializers.ListField(child=Text(), required=False)


class CloneOptions(Body):
    messageLimit = Whole(required=False)
    messageFilter = MessageFilterInput(required=False)


class CloneThread(Body):
    newThreadId = Text(required=False)
    resourceId = Text(required=False)
    title = Text(required=False)
    metadata = JsonObject(required=False)
    options = CloneOptions(required=False)


class TransferThread(Body):
    resourceId = Text(blank=False)


class SaveMessages(Body):
    messages = serializers.ListField()


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "object"}, {"type": "array"}]})
class MessageIds(serializers.Field):
    """One id, a list of ids, `{id}`, or a list of `{id}`; not a mixed list."""

    default_error_messages = {
        "invalid": "expected an id, an object with an id, or a list of one of these"
    }

    def to_internal_value(self, data: Any) -> list[str]:
        items = data if isinstance(data, list) else [data]
        if items and all(isinstance(item, dict) for item in items):
            items = [item.get("id") for item in items]
        if not all(isinstance(item, str) and item for item in items):
            self.fail("invalid")
        return items

    def to_representation(self, value: Any) -> Any:
        return value


class DeleteMessages(Body):
    messageIds = MessageIds()


class WriteWorkingMemory(Body):
    workingMemory = Text(blank=False)
    resourceId = Text(required=False)
    memoryConfig = JsonObject(required=False)


class RestoreWorkingMemory(Body):
    version = Whole()
    resourceId = Text(required=False)
    memoryConfig = JsonObject(required=False)


class ReadContext(Body):
    newMessages = serializers.ListField(required=False)
    resourceId = Text(required=False)
    memoryConfig = JsonObject(required=False)


class BufferStatus(Body):
    agentId = Text(blank=False)
    resourceId = Text(required=False)
    threadId = Text(required=False)


# Answers


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
    source = serializers.ChoiceField(["thread", "resource"])
    workingMemoryTemplate = WorkingMemoryTemplate(allow_null=True)
    threadExists = serializers.BooleanField()


class Revision(serializers.Serializer[Any]):
    version = Whole()
    workingMemory = Text()
    source = Text()
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
    context = SearchContext(required=False)
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
