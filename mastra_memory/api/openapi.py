"""How drf-spectacular describes the viewsets of the memory API."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

AS_JSON = "x-sent-as-json"
ALLOW_EMPTY = "x-allow-empty"


def json_parameter(name: str, text: str, schema: dict[str, Any]) -> OpenApiParameter:
    """Return a query parameter whose value is JSON text of this schema."""
    return OpenApiParameter(name, schema, description=text, extensions={AS_JSON: True})


class MemoryAutoSchema(AutoSchema):
    """Write what OpenAPI knows of a parameter and `OpenApiParameter` has no argument for.

    A value sent as JSON is described by `content`, and an empty value that is taken for none by
    `allowEmptyValue`.
    """

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        """Return the operation with its parameters rewritten."""
        operation = super().get_operation(*args, **kwargs)
        for parameter in (operation or {}).get("parameters", ()):
            if parameter.pop(AS_JSON, False):
                parameter["content"] = {"application/json": {"schema": parameter.pop("schema")}}
            if parameter.pop(ALLOW_EMPTY, False):
                parameter["allowEmptyValue"] = True
        return operation
