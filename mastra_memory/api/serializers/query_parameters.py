"""Serializer fields for query parameters, in all formats that Mastra's clients send."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.fields import empty

from mastra_memory.api.serializers import json_schemas
from mastra_memory.api.serializers.fields import Field, JsonObjectField
from mastra_memory.api.serializers.request_base import build_parameter_error
from mastra_memory.db import json_text, times
from mastra_memory.db.sql import MAX_PAGE
from mastra_memory.exceptions import InvalidInput


class Parameter(Field):
    """A query parameter that may be sent once. An empty value is treated as missing.

    Args:
        description: Shown in the OpenAPI schema.
    """

    default_error_messages = {
        "required": "is required; add ?{name}=…",
        "several": "expected one value, received several",
    }
    schema: ClassVar[Mapping[str, Any]] = json_schemas.TEXT

    def __init__(self, description: str, *, required: bool = False, **options: Any) -> None:
        required = required and "default" not in options
        if "default" not in options:  # REST framework refuses both together
            options["required"] = required
        super().__init__(help_text=description, **options)
        schema = json_schemas.NON_EMPTY_TEXT if required else self.schema
        self._spectacular_annotation = {"field": {**schema}}

    def get_value(self, dictionary: Any) -> Any:
        """Return the list of values of the parameter, or `empty`."""
        values = dictionary.getlist(self.field_name)
        return empty if values in ([], [""]) else values

    def to_internal_value(self, data: Any) -> Any:
        """Return the parsed value of the parameter."""
        if len(data) > 1:
            self.fail("several")
        return self.parse(json_text.clean_text(str(data[0])))

    def parse(self, text: str) -> Any:
        """Return the value of a non-empty text."""
        return text

    def fail(self, key: str, **kwargs: Any) -> Any:
        """Raise a `ValidationError`; the message may contain the name of the parameter."""
        super().fail(key, name=self.field_name, **kwargs)


class IntegerParameter(Parameter):
    """A whole number."""

    default_error_messages = {
        "invalid": "expected a whole number",
        "range": "expected a whole number of at least {minimum}",
    }
    schema = json_schemas.NON_NEGATIVE_INTEGER

    def __init__(self, description: str, *, minimum: int = 0, **options: Any) -> None:
        self.minimum = minimum
        super().__init__(description, **options)
        self._spectacular_annotation["field"]["minimum"] = minimum

    def parse(self, text: str) -> int:
        """Return the number; `3.0` is accepted, as in JavaScript."""
        try:
            # Python also reads 1_000 and the digits of other scripts; JavaScript does not.
            number = float(text.replace("_", "?").encode("ascii", "replace"))
            integer = int(number)
        except (ValueError, OverflowError):
            self.fail("invalid")
        if integer != number or not self.minimum <= integer <= MAX_PAGE:
            self.fail("range", minimum=self.minimum)
        return integer


class FlagParameter(Parameter):
    """`true` or `false`."""

    default_error_messages = {"invalid": "expected true or false"}
    schema = json_schemas.BOOLEAN

    def parse(self, text: str) -> bool:
        """Return the flag."""
        if text not in ("true", "false"):
            self.fail("invalid")
        return text == "true"


class ChoiceParameter(Parameter):
    """One of several words."""

    default_error_messages = {"invalid": "expected one of {choices}"}

    def __init__(self, description: str, choices: Iterable[str], **options: Any) -> None:
        self.choices = tuple(choices)
        super().__init__(description, **options)
        self._spectacular_annotation["field"]["enum"] = list(self.choices)

    def parse(self, text: str) -> str:
        """Return the word."""
        if text not in self.choices:
            self.fail("invalid", choices=", ".join(self.choices))
        return text


class DateTimeParameter(Parameter):
    """A time in ISO 8601 format."""

    default_error_messages = {"invalid": "expected a date: {reason}"}
    schema = json_schemas.DATE_TIME

    def parse(self, text: str) -> Any:
        """Return the time in UTC."""
        try:
            return times.parse_time(text)
        except ValueError as error:
            self.fail("invalid", reason=error)


class JsonParameter(Parameter):
    """A parameter that contains JSON text.

    Args:
        description: Shown in the OpenAPI schema.
        child: The field or serializer that validates the parsed value.
        schema: The schema of the parsed value, if it differs from that of `child`.
    """

    default_error_messages = {"brackets": "expected JSON, such as {name}={{}}, and no brackets"}

    def __init__(
        self,
        description: str,
        child: serializers.Field[Any, Any, Any, Any],
        schema: Mapping[str, Any],
        **options: Any,
    ) -> None:
        self.child = child
        super().__init__(description, **options)
        self._spectacular_annotation = {"field": {**schema, json_schemas.SENT_AS_JSON: True}}

    def get_value(self, dictionary: Any) -> Any:
        """Return the list of values of the parameter. An empty value is validated, not skipped.

        Names with brackets, such as `filter[roles]`, are refused, so that a filter is never
        ignored.
        """
        if any(name.startswith(f"{self.field_name}[") for name in dictionary):
            self.fail("brackets")
        return dictionary.getlist(self.field_name) or empty

    def parse(self, text: str) -> Any:
        """Parse the JSON and validate the result."""
        return self.child.run_validation(parse_json(text))


def parse_json(text: str) -> Any:
    """Return the parsed JSON; text that is not valid JSON is returned unchanged."""
    try:
        return json_text.loads(text)
    except InvalidInput:
        return text


class MetadataParameter(JsonParameter):
    """The metadata that threads must have: JSON, or `metadata[key]=value` pairs of text."""

    def get_value(self, dictionary: Any) -> Any:
        """Return the list of JSON texts, or the pairs as a dictionary."""
        values = dictionary.getlist(self.field_name)
        return values or read_bracket_pairs(dictionary, str(self.field_name)) or empty

    def to_internal_value(self, data: Any) -> Any:
        """Return the metadata."""
        return data if isinstance(data, dict) else super().to_internal_value(data)


def read_bracket_pairs(query: Any, name: str) -> dict[str, str]:
    """Return the `name[key]=value` pairs of a query string; deeper brackets are ignored.

    Raises:
        InvalidInput: A key occurs more than once.
    """
    start = f"{name}["
    pairs: dict[str, str] = {}
    for key, values in query.lists():
        if key.startswith(start) and key.endswith("]") and "[" not in key[len(start) :]:
            if len(values) > 1:
                raise build_parameter_error(key, "expected one value, received several")
            pairs[key[len(start) : -1]] = json_text.clean_text(str(values[0]))
    return pairs


_SEVERAL = object()


class OrderParameter(JsonParameter):
    """The order of a list as `{field, direction}`: JSON, or `orderBy[field]=…` pairs.

    Invalid JSON is ignored, as in Mastra. Older clients of Mastra send only the name of the field,
    and the direction in `sortDirection`.

    Args:
        fields: The allowed fields; the first one is the default.
        accept_name: Also accept only the name of a field.
    """

    default_error_messages = {"object": "expected an object"}

    def __init__(self, fields: Iterable[str], *, accept_name: bool = False) -> None:
        self.order_fields = tuple(fields)
        self.accept_name = accept_name
        super().__init__(
            "Also as `orderBy[field]` and `orderBy[direction]`. Invalid JSON is ignored.",
            JsonObjectField(),
            json_schemas.object_of(
                {
                    "field": json_schemas.one_of(*self.order_fields),
                    "direction": json_schemas.one_of("ASC", "DESC"),
                }
            ),
            required=False,
        )

    def get_value(self, dictionary: Any) -> Any:
        """Return the order as a dictionary or any other JSON value, or `empty`."""
        values = dictionary.getlist(self.field_name)
        if len(values) > 1:
            return _SEVERAL
        order = parse_json(json_text.clean_text(values[0])) if values else ""
        if isinstance(order, str):
            order = self._read_name(order, dictionary)
        if order is None:
            order = read_bracket_pairs(dictionary, str(self.field_name)) or empty
        return order

    def _read_name(self, text: str, dictionary: Any) -> Any:
        if not self.accept_name or not text or text.lstrip().startswith(("{", "[")):
            return None
        direction = dictionary.get("sortDirection")
        return {"field": text} | ({"direction": direction} if direction else {})

    def to_internal_value(self, data: Any) -> tuple[str, str | None]:
        """Return the field and the direction, which is None if it was not sent."""
        if data is _SEVERAL:
            self.fail("several")
        if not isinstance(data, dict):
            self.fail("object")
        field = data.get("field", self.order_fields[0])
        if field not in self.order_fields:
            choices = ", ".join(self.order_fields)
            raise serializers.ValidationError({"field": [f"expected one of {choices}"]})
        direction = data.get("direction")
        if direction not in (None, "ASC", "DESC"):
            raise serializers.ValidationError({"direction": ["expected ASC or DESC"]})
        return field, direction
