"""Serializer fields for the JSON of Mastra's clients.

Fields do not convert types: a number is not accepted as a string, and null only if the field allows
it. REST framework's own fields convert values in both directions. That would hide errors of clients
and slow down long lists.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mastra_memory import conf
from mastra_memory.api.serializers import json_schemas
from mastra_memory.db import times
from mastra_memory.db.sql import MAX_PAGE


class Field(serializers.Field[Any, Any, Any, Any]):
    """A field whose value needs no conversion in a response."""

    converts: ClassVar[bool] = False
    """True if `to_representation` changes the value."""

    def to_representation(self, value: Any) -> Any:
        """Return the value unchanged."""
        return value


@extend_schema_field(OpenApiTypes.STR)
class TextField(Field):
    """Text of any length, without trimming."""

    default_error_messages = {"invalid": "expected text", "blank": "may not be empty"}

    def __init__(self, *, allow_blank: bool = True, **options: Any) -> None:
        # Not `self.allow_blank`: drf-spectacular would allow empty text in every schema of a
        # subclass that has a minimum length.
        self.accepts_blank = allow_blank
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        """Return the text; refuse every other type."""
        if not isinstance(data, str):
            self.fail("invalid")
        if not data and not self.accepts_blank:
            self.fail("blank")
        return data


@extend_schema_field(json_schemas.NON_EMPTY_TEXT)
class NonEmptyTextField(TextField):
    """Text that may not be empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_blank=False, **options)


@extend_schema_field(OpenApiTypes.STR)
class OptionalTextField(Field):
    """Text of a response. Empty text is treated as None."""

    converts = True

    def to_representation(self, value: Any) -> str | None:
        """Return None for empty text."""
        return value or None


@extend_schema_field(OpenApiTypes.OBJECT)
class JsonObjectField(Field):
    """A JSON object with any content."""

    default_error_messages = {"invalid": "expected an object"}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the object; refuse every other type."""
        if not isinstance(data, dict):
            self.fail("invalid")
        return data


@extend_schema_field({"type": "integer", "minimum": -MAX_PAGE, "maximum": MAX_PAGE})
class IntegerField(Field):
    """A whole number."""

    default_error_messages = {"invalid": "expected a whole number"}

    def to_internal_value(self, data: Any) -> int:
        """Return the number; `3.0` is accepted, as in JavaScript."""
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        if not -MAX_PAGE <= data <= MAX_PAGE or data != int(data):
            self.fail("invalid")
        return int(data)


@extend_schema_field(json_schemas.POSITIVE_INTEGER)
class VersionField(IntegerField):
    """The number of a revision; the first is 1."""


@extend_schema_field(OpenApiTypes.BOOL)
class FlagField(Field):
    """True or false."""

    default_error_messages = {"invalid": "expected true or false"}

    def to_internal_value(self, data: Any) -> bool:
        """Return the flag; refuse every other type."""
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


@extend_schema_field(OpenApiTypes.NUMBER)
class NumberField(Field):
    """A number of a response."""


@extend_schema_field(json_schemas.list_of(json_schemas.TEXT))
class IdListField(Field):
    """A list of ids of a response."""


@extend_schema_field(json_schemas.DATE_TIME_OR_MILLISECONDS)
class DateTimeField(Field):
    """A time of a request: ISO 8601 text or epoch milliseconds."""

    default_error_messages = {"invalid": "expected a date"}

    def to_internal_value(self, data: Any) -> Any:
        """Return the time in UTC."""
        try:
            return times.parse_time(data)
        except ValueError:
            self.fail("invalid")


@extend_schema_field(json_schemas.DATE_TIME)
class DateTimeTextField(Field):
    """A time of a response that the database returned as text, `2024-01-01T00:00:00.000Z`."""


@extend_schema_field(json_schemas.DATE_TIME)
class UtcDateTimeField(Field):
    """A time of a response that is a `datetime` in UTC."""

    converts = True

    def to_representation(self, value: Any) -> str:
        """Return the time as `2024-01-01T00:00:00.000Z`."""
        return times.format_time(value)


class ChoiceField(serializers.ChoiceField):
    """One of several words. Values of responses are not validated."""

    converts = False

    def to_representation(self, value: Any) -> Any:
        """Return the value unchanged."""
        return value


class TitleField(Field):
    """The title of a thread; `Memory` refuses one that is longer than `MAX_TITLE_LENGTH`."""

    default_error_messages = {"invalid": "expected text"}

    def to_internal_value(self, data: Any) -> str:
        """Return the text; refuse every other type."""
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class ListField(Field):
    """A list whose items are validated later, by `Memory` or by a subclass.

    Args:
        limit: The name of the setting with the largest number of items.
    """

    default_error_messages = {
        "invalid": "expected a list",
        "too_many": "may hold at most {limit} items, not {count}",
    }
    schema: ClassVar[json_schemas.Schema]
    """The OpenAPI schema, to which `openapi.ListFieldExtension` adds the limit."""

    def __init__(self, *, limit: str, **options: Any) -> None:
        self.limit = limit
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> list[Any]:
        """Return the list; refuse one that is longer than the setting allows."""
        if not isinstance(data, list):
            self.fail("invalid")
        limit = getattr(conf.app_settings(), self.limit)
        if len(data) > limit:
            self.fail("too_many", limit=limit, count=len(data))
        return data


class TextListField(ListField):
    """A list of texts."""

    schema = json_schemas.list_of(json_schemas.TEXT)

    def to_internal_value(self, data: Any) -> list[str]:
        """Return the texts; report only the first item that is not text, as lists can be long."""
        texts = super().to_internal_value(data)
        for index, item in enumerate(texts):
            if not isinstance(item, str):
                raise serializers.ValidationError({str(index): ["expected text"]})
        return texts


class MessagesField(ListField):
    """Messages to save; `Memory.save_messages` checks each of them."""

    schema = json_schemas.list_of(json_schemas.MESSAGE)


class NewMessagesField(ListField):
    """Messages that are not saved yet, or their texts."""

    schema = json_schemas.NEW_MESSAGES


@extend_schema_field(json_schemas.MEMORY_CONFIG)
class MemoryConfigField(JsonObjectField):
    """Options that override those of the agent."""


@extend_schema_field(json_schemas.WORKING_MEMORY_CONFIG)
class WorkingMemoryConfigField(JsonObjectField):
    """Options that override those of the agent. They cannot disable working memory."""


@extend_schema_field(json_schemas.NON_EMPTY_TEXT)
class OwnerIdField(TextField):
    """The resource of a new thread. Ignored for scoped callers, who always use their own."""


@extend_schema_field(json_schemas.MESSAGE_IDS)
class MessageIdsField(Field):
    """One id, a list of ids, `{id}`, or a list of `{id}`; the forms cannot be mixed in a list."""

    default_error_messages = {
        "invalid": "expected an id, an object with an id, or a list of one of these",
        "too_many": "may hold at most {limit} items, not {count}",
    }

    def to_internal_value(self, data: Any) -> list[str]:
        """Return the ids as a list."""
        items = data if isinstance(data, list) else [data]
        limit = conf.app_settings().MAX_IDS
        if len(items) > limit:
            self.fail("too_many", limit=limit, count=len(items))
        if items and all(isinstance(item, dict) for item in items):
            items = [item.get("id") for item in items]
        if not all(isinstance(item, str) and item for item in items):
            self.fail("invalid")
        return items


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class TextMapField(Field):
    """An object whose values are texts."""


@extend_schema_field(
    {
        "type": "object",
        "properties": {"tokens": {"type": "integer", "minimum": 0}},
        "required": ["tokens"],
    }
)
class UsageField(Field):
    """Tokens used for embedding; left out if there were none."""

    converts = True

    def __init__(self, **options: Any) -> None:
        super().__init__(source="usage_tokens", required=False, **options)

    def to_representation(self, value: int) -> Mapping[str, int] | None:
        """Return `{"tokens": n}`, or None for 0."""
        return {"tokens": value} if value else None
