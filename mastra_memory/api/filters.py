"""Filters of the list of threads that Mastra does not have: dates, title and words."""

from datetime import datetime
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, QuerySet
from django_filters import rest_framework as filters
from django_filters.fields import IsoDateTimeField
from rest_framework.request import Request

from mastra_memory.api.errors import flatten_errors
from mastra_memory.api.serializers.request_base import build_parameter_error
from mastra_memory.db import times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Thread
from mastra_memory.search import lists


class UtcDateTimeFormField(IsoDateTimeField):
    """A form field for a time in ISO 8601 format.

    The time is converted to UTC, since PostgreSQL does not accept offsets of 16 hours or more.
    """

    def clean(self, value: Any) -> datetime | None:
        """Return the time, or None for an empty value."""
        moment = super().clean(value)
        try:
            return None if moment is None else times.truncate_to_milliseconds(moment)
        except OverflowError:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None


class UtcDateTimeFilter(filters.IsoDateTimeFilter):
    """Filter by a time in any time zone."""

    field_class = UtcDateTimeFormField


class ThreadFilter(filters.FilterSet):
    """Filter threads; all conditions must hold. Times are inclusive."""

    createdAfter = UtcDateTimeFilter("created_at", "gte", label="Created at or after.")
    createdBefore = UtcDateTimeFilter("created_at", "lte", label="Created at or before.")
    updatedAfter = UtcDateTimeFilter("updated_at", "gte", label="Active at or after.")
    updatedBefore = UtcDateTimeFilter("updated_at", "lte", label="Active at or before.")
    title = filters.CharFilter("title", "icontains", label="A part of the title.")
    text = filters.CharFilter(method="filter_by_words", label="Words of a message.")

    class Meta:
        """Use only the declared filters."""

        model = Thread
        fields: ClassVar[list[str]] = []

    def filter_by_words(self, threads: QuerySet[Thread], _name: str, words: str) -> Any:
        """Keep threads with a message that meets the query.

        Raises:
            InvalidInput: The query cannot find anything, or it has an invalid role or date.
        """
        messages = lists.search_messages(words)
        return threads.filter(Exists(messages.filter(thread_id=OuterRef("pk"))))


class MemoryFilterBackend(filters.DjangoFilterBackend):
    """Apply the filters of a view and report errors as the rest of the API does."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> Any:
        """Return the filtered queryset, or `queryset` itself if no filter is used.

        Creating a filter set takes longer than reading a page of threads.

        Raises:
            InvalidInput: A value is invalid or given several times.
        """
        filterset_class = self.get_filterset_class(view, queryset)
        query = request.query_params
        used = filterset_class.base_filters.keys() & query.keys() if filterset_class else ()
        if not used:
            return queryset
        for name in sorted(used):
            if len(query.getlist(name)) > 1:
                raise build_parameter_error(name, "expected one value, received several")
        filterset = filterset_class(query, queryset, request=request)
        if not filterset.is_valid():
            raise InvalidInput("Invalid query parameters", list(flatten_errors(filterset.errors)))
        return filterset.qs
