"""The base of the serializers that validate requests."""

import functools
from typing import Any, ClassVar

from rest_framework import serializers

from mastra_memory.api.errors import flatten_errors
from mastra_memory.exceptions import InvalidInput, Issue


class RequestSerializer(serializers.Serializer[Any]):
    """Validate a part of a request and report errors as `InvalidInput`."""

    default_error_messages = {"invalid": "expected an object"}
    subject: ClassVar[str] = "request body"
    """The part of the request, for error messages."""

    @classmethod
    def validate_data(cls, data: Any) -> dict[str, Any]:
        """Return the validated values.

        Raises:
            InvalidInput: A value is missing or invalid; `issues` lists all of them.
        """
        try:
            return dict(_get_serializer(cls).run_validation(data))
        except serializers.ValidationError as error:
            issues = list(flatten_errors(error.detail))
            first = f"{issues[0].field}: {issues[0].message}"
            raise InvalidInput(f"Invalid {cls.subject}: {first}", issues) from None


@functools.cache
def _get_serializer(serializer_class: type[RequestSerializer]) -> RequestSerializer:
    # Creating a serializer copies its fields, which takes longer than validating a small body.
    # `run_validation` keeps no state, so one instance serves all requests.
    return serializer_class(error_messages={"null": "No data provided"})


def build_parameter_error(name: str, message: str) -> InvalidInput:
    """Return the error of one query parameter."""
    return InvalidInput(f"Invalid query parameters: {name}: {message}", [Issue(name, message)])
