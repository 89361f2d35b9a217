"""The small tables of reviewing: tags and the rubric."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access
from mastra_memory.admin.base import MemoryAdmin
from mastra_memory.models import Criterion, Tag


@admin.register(Tag)
class TagAdmin(MemoryAdmin):
    """Tags: rename one here and it changes on every thread."""

    list_display = ["name", "threads"]
    search_fields = ["name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tag]:
        """With the number of threads that carry it, of those that this person may see."""
        threads = access.visible_threads(request).order_by()
        seen = Q(thread_tags__thread__in=threads.values("pk")) if threads.query.where else None
        return (
            super().get_queryset(request).annotate(thread_count=Count("thread_tags", filter=seen))
        )

    @admin.display(description=_("threads"))
    def threads(self, tag: Any) -> int:
        """How many threads carry it."""
        return tag.thread_count


@admin.register(Criterion)
class CriterionAdmin(MemoryAdmin):
    """What threads are scored by."""

    list_display = ["name", "kind", "minimum", "maximum", "active", "position"]
    list_filter = ["kind", "active"]
    fieldsets = [
        (None, {"fields": ["name", "help_text", "kind", "active", "position"]}),
        (_("Scale of a number"), {"fields": ["minimum", "maximum"]}),
        (_("Choices"), {"fields": ["choices"]}),
    ]
