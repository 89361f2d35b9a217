"""Request bodies as schemas. Fields are strict: a number is no text, and null is only null."""

import functools
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mastra_memory import conf
from mastra_memory.api import json_schemas
from mastra_memory.api.errors import flatten_errors
from mastra_memory.db import times
from mastra_memory.db.sql import MAX_PAGE
from mastra_memory.exceptions import InvalidInput


class Field(serializers.Field):
    """A field of a body; what is read goes out as it came in."""

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(OpenApiTypes.STR)
class Text(Field):
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


@extend_schema_field(OpenApiTypes.OBJECT)
class JsonObject(Field):
    """An object with any content."""

    default_error_messages = {"invalid": "expected an object"}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return data


@extend_schema_field({"type": "integer", "minimum": -MAX_PAGE, "maximum": MAX_PAGE})
class Whole(Field):
    """A whole number."""

    default_error_messages = {"invalid": "expected a whole number"}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        if not -MAX_PAGE <= data <= MAX_PAGE or data != int(data):
            self.fail("invalid")
        return int(data)


@extend_schema_field(json_schemas.POSITIVE_SIZE)
class Version(Whole):
    """The number of a revision; the first is 1."""


@extend_schema_field(json_schemas.INSTANT_OR_MILLISECONDS)
class Moment(Field):
    """ISO 8601 text or epoch milliseconds."""

    default_error_messages = {"invalid": "expected a date"}

    def to_internal_value(self, data: Any) -> Any:
        try:
            return times.parse_time(data)
        except ValueError:
            self.fail("invalid")


class JsonList(Field):
    """A list of anything: what is in it is checked where it is used.

    `limit` names the setting with the most items that it may hold.
    """

    default_error_messages = {
        "invalid": "expected a list",
        "too_many": "may hold at most {limit} items, not {count}",
    }

    def __init__(self, *, limit: str, **options: Any) -> None:
        self.limit = limit
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("invalid")
        limit = getattr(conf.app_settings(), self.limit)
        if len(data) > limit:
            self.fail("too_many", limit=limit, count=len(data))
        return data


@extend_schema_field(json_schemas.list_of(json_schemas.TEXT))
class TextList(JsonList):
    """A list of texts, however long; the first that is none is told."""

    def to_internal_value(self, data: Any) -> list[str]:
        texts = super().to_internal_value(data)
        for index, item in enumerate(texts):
            if not isinstance(item, str):
                raise serializers.ValidationError({str(index): ["expected text"]})
        return texts


@extend_schema_field(json_schemas.list_of(json_schemas.MESSAGE))
class Messages(JsonList):
    """Messages to save; what is in them is checked where they are saved."""


@extend_schema_field(json_schemas.NEW_MESSAGES)
class NewMessages(JsonList):
    """Messages that are not saved yet, or their texts."""


@extend_schema_field(json_schemas.MEMORY_CONFIG)
class MemoryConfig(JsonObject):
    """Options in place of the agent's own."""


@extend_schema_field(json_schemas.FILLED_TEXT)
class FilledText(Text):
    """Text that may not be empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(blank=False, **options)


@extend_schema_field(json_schemas.FILLED_TEXT)
class OwnerId(Text):
    """The resource to own a thread. A scoped caller's own is taken, whatever is sent."""


@extend_schema_field(json_schemas.WRITING_CONFIG)
class WritingConfig(JsonObject):
    """Options in place of the agent's own; working memory may not be switched off."""


class Body(serializers.Serializer[Any]):
    """A request body."""

    default_error_messages = {"invalid": "expected an object"}

    @classmethod
    def read(cls, data: Any) -> dict[str, Any]:
        """The checked body. Raises `InvalidInput` naming every faulty field."""
        try:
            return dict(_schema(cls).run_validation(data))
        except serializers.ValidationError as error:
            issues = list(flatten_errors(error.detail))
            first = f"{issues[0].field}: {issues[0].message}"
            raise InvalidInput(f"Invalid request body: {first}", issues) from None


@functools.cache
def _schema(body: type[Body]) -> Body:
    """A serializer that checks any number of bodies, for making its fields takes longest."""
    return body(error_messages={"null": "No data provided"})


class CreateThread(Body):
    resourceId = OwnerId()
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
    messageIds = TextList(limit="MAX_IDS", required=False)


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
    resourceId = FilledText()


class SaveMessages(Body):
    messages = Messages(limit="MAX_MESSAGES_PER_SAVE")


@extend_schema_field(json_schemas.MESSAGE_IDS)
class MessageIds(Field):
    """One id, a list of ids, `{id}`, or a list of `{id}`; not a mixed list."""

    default_error_messages = {
        "invalid": "expected an id, an object with an id, or a list of one of these",
        "too_many": "may hold at most {limit} items, not {count}",
    }

    def to_internal_value(self, data: Any) -> list[str]:
        items = data if isinstance(data, list) else [data]
        limit = conf.app_settings().MAX_IDS
        if len(items) > limit:
            self.fail("too_many", limit=limit, count=len(items))
        if items and all(isinstance(item, dict) for item in items):
            items = [item.get("id") for item in items]
        if not all(isinstance(item, str) and item for item in items):
            self.fail("invalid")
        return items


class DeleteMessages(Body):
    messageIds = MessageIds()


class WriteWorkingMemory(Body):
    workingMemory = FilledText()
    resourceId = Text(required=False)
    memoryConfig = WritingConfig(required=False)


class RestoreWorkingMemory(Body):
    version = Version()
    resourceId = Text(required=False)
    memoryConfig = WritingConfig(required=False)


class ReadContext(Body):
    newMessages = NewMessages(limit="MAX_NEW_MESSAGES", required=False)
    resourceId = Text(required=False)
    memoryConfig = MemoryConfig(required=False)


class BufferStatus(Body):
    agentId = FilledText()
    resourceId = Text(required=False)
    threadId = Text(required=False)


class DocumentedBufferStatus(BufferStatus):
    """`BufferStatus` as the documentation shows it: only scoped callers may leave the owner out."""

    resourceId = OwnerId()
