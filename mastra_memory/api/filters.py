"""Filters of the thread list beyond Mastra's: dates, title, words."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, QuerySet
from django_filters import rest_framework as filters
from django_filters.fields import IsoDateTimeField
from rest_framework.request import Request

from mastra_memory.api.errors import flatten_errors
from mastra_memory.api.query_parameters import fault
from mastra_memory.db import times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Thread
from mastra_memory.search import tsvector


class UtcDateTimeField(IsoDateTimeField):
    """An ISO 8601 time, in UTC: PostgreSQL refuses zones of 16 hours and more."""

    def clean(self, value: Any) -> datetime | None:
        """Return the time, or None for an empty value."""
        moment = super().clean(value)
        try:
            return None if moment is None else times.truncate_to_milliseconds(moment)
        except OverflowError:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None


class UtcDateTimeFilter(filters.IsoDateTimeFilter):
    """Filter by a time that may be given in any zone."""

    field_class = UtcDateTimeField


class ThreadFilter(filters.FilterSet):
    """All given conditions must hold. Times are ISO 8601, inclusive."""

    createdAfter = UtcDateTimeFilter("created_at", "gte", label="created at or after")
    createdBefore = UtcDateTimeFilter("created_at", "lte", label="created at or before")
    updatedAfter = UtcDateTimeFilter("updated_at", "gte", label="active at or after")
    updatedBefore = UtcDateTimeFilter("updated_at", "lte", label="active at or before")
    title = filters.CharFilter("title", "icontains", label="part of the title")
    text = filters.CharFilter(method="with_words", label="words in a message")

    class Meta:
        model = Thread
        fields: list[str] = []

    def with_words(self, threads: QuerySet[Thread], _name: str, words: str) -> Any:
        messages = tsvector.list_messages_with_words(words)
        return threads.filter(Exists(messages.filter(thread_id=OuterRef("pk"))))


def narrowed_threads(request: Request) -> QuerySet[Thread] | None:
    """The threads that the filters keep, None when no filter is named."""
    named = ThreadFilter.base_filters.keys() & request.query_params.keys()
    if not named:
        return None
    if doubled := [name for name in named if len(request.query_params.getlist(name)) > 1]:
        raise fault(min(doubled), "expected one value, received several")
    narrowed = ThreadFilter(request.query_params, Thread.objects.all(), request=request)
    if not narrowed.is_valid():
        issues = list(flatten_errors(narrowed.errors))
        raise InvalidInput("Invalid query parameters", issues)
    return narrowed.qs
