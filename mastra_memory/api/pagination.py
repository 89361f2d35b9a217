"""Pagination of the lists of the memory API, in the format of Mastra's responses."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from drf_spectacular.drainage import get_override
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from mastra_memory.api.serializers.fields import UsageField
from mastra_memory.api.serializers.query_strings import PageQuery
from mastra_memory.db.sql import MAX_PAGE

ReadPage = Callable[..., Any]
"""A `list_...` method of `Memory` that takes `page` and `per_page`."""


class PageNumberPagination(BasePagination):
    """Pages counted from 0, with `total` and `hasMore`.

    `Memory` reads a page and the total in one statement. Therefore `paginate_queryset` takes not a
    queryset but a method of `Memory` with all arguments except `page` and `per_page` bound.
    """

    page_size: ClassVar[int] = 100
    """Items of a page, unless `perPage` is given."""
    results_field: ClassVar[str] = "results"
    """The key of the items in the response."""

    def paginate_queryset(  # type: ignore[override]
        self, queryset: ReadPage, request: Request, view: Any = None
    ) -> Sequence[Any]:
        """Return the items of the requested page.

        Scoped callers get at most `MAX_PER_PAGE` items.
        """
        query = PageQuery.validate_data(request.query_params)
        per_page = min(query.get("perPage", self.page_size), view.max_page_size)
        self.page = queryset(page=query["page"], per_page=per_page)
        items: Sequence[Any] = getattr(self.page, self.results_field)
        return items

    def get_paginated_data(self, data: Any) -> dict[str, Any]:
        """Return the response body with the serialized items."""
        return {
            self.results_field: data,
            "total": self.page.total,
            "page": self.page.page,
            "perPage": self.page.per_page,
            "hasMore": self.page.has_more,
        }

    def get_paginated_response(self, data: Any) -> Response:
        """Return `get_paginated_data` as a response."""
        return Response(self.get_paginated_data(data))

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        """Return the OpenAPI schema of the answer."""
        properties = {
            self.results_field: schema,
            "total": {"type": "integer", "minimum": 0},
            "page": {"type": "integer", "minimum": 0},
            "perPage": {"type": "integer", "minimum": 0},
            "hasMore": {"type": "boolean"},
        }
        return {"type": "object", "properties": properties, "required": list(properties)}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the OpenAPI descriptions of `page` and `perPage`."""
        fields = PageQuery().fields
        return [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": str(field.help_text)
                + (f" The default is {self.page_size}." if name == "perPage" else ""),
                "schema": {"type": "integer", "minimum": 0, "maximum": MAX_PAGE},
            }
            for name, field in fields.items()
        ]


class ThreadPagination(PageNumberPagination):
    """Pages of threads."""

    page_size = 100
    results_field = "threads"


class RevisionPagination(PageNumberPagination):
    """Pages of revisions of a working memory."""

    page_size = 20
    results_field = "revisions"


class GenerationPagination(PageNumberPagination):
    """Pages of generations of observations."""

    page_size = 10
    results_field = "generations"


class MessagePagination(PageNumberPagination):
    """Pages of messages, with the tokens used for semantic recall."""

    page_size = 40
    results_field = "messages"

    def get_paginated_data(self, data: Any) -> dict[str, Any]:
        """Return the body with `usage`, and with `uiMessages`, which Mastra's clients expect."""
        answer = super().get_paginated_data(data)
        answer["uiMessages"] = None
        if usage := _USAGE.to_representation(self.page.usage_tokens):
            answer["usage"] = usage
        return answer

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        """Return the OpenAPI schema of the answer."""
        described = super().get_paginated_response_schema(schema)
        described["properties"]["uiMessages"] = {"type": "object", "nullable": True}
        described["properties"]["usage"] = get_override(_USAGE, "field")
        described["required"].append("uiMessages")
        return described


_USAGE = UsageField()
