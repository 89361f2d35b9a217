"""How drf-spectacular describes the routes of the memory API."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema

from mastra_memory import conf
from mastra_memory.api.serializers.json_schemas import SENT_AS_JSON
from mastra_memory.api.serializers.response_bodies import ErrorSerializer


def describe_responses(success: Any, *statuses: int) -> dict[int, Any]:
    """Return the argument `responses` of `extend_schema` for a route.

    Args:
        success: The serializer of the response with status 200.
        *statuses: Error statuses of this route besides 400, 401 and 403.
    """
    return {200: success} | dict.fromkeys((400, 401, 403, *statuses), ErrorSerializer)


class ListFieldExtension(OpenApiSerializerFieldExtension):
    """Describe a list with the largest number of items that the settings allow."""

    target_class = "mastra_memory.api.serializers.fields.ListField"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the schema of the list."""
        limit = getattr(conf.app_settings(), self.target.limit)
        return {**self.target.schema, "maxItems": limit}


class TitleFieldExtension(OpenApiSerializerFieldExtension):
    """Describe a title with the largest length that the settings allow."""

    target_class = "mastra_memory.api.serializers.fields.TitleField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the schema of the title."""
        return {"type": "string", "maxLength": conf.app_settings().MAX_TITLE_LENGTH}


class MemoryAutoSchema(AutoSchema):
    """Describe query parameters more precisely than drf-spectacular does.

    A value that is sent as JSON is described by `content` instead of `schema`. Every other
    optional parameter has `allowEmptyValue`, since an empty value is treated as missing.
    """

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        """Return the description of a route."""
        operation = super().get_operation(*args, **kwargs)
        for parameter in (operation or {}).get("parameters", ()):
            if parameter["in"] != "query":
                continue
            if parameter["schema"].pop(SENT_AS_JSON, False):
                parameter["content"] = {"application/json": {"schema": parameter.pop("schema")}}
            elif not parameter.get("required"):
                parameter["allowEmptyValue"] = True
        return operation
