"""Tags and rubric criteria."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access
from mastra_memory.admin.base import MemoryAdmin
from mastra_memory.models import Tag


class TagAdmin(MemoryAdmin):
    """Tags. Renaming a tag changes it on all threads."""

    list_display = ["name", "threads"]
    search_fields = ["name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tag]:
        """Annotate each tag with the number of visible threads that have it."""
        threads = access.visible_threads(request).order_by()
        seen = Q(thread_tags__thread__in=threads.values("pk")) if threads.query.where else None
        tags: QuerySet[Tag] = super().get_queryset(request)
        return tags.annotate(thread_count=Count("thread_tags", filter=seen))

    @admin.display(description=_("threads"))
    def threads(self, tag: Any) -> int:
        """Return the number of visible threads with this tag."""
        count: int = tag.thread_count
        return count


class CriterionAdmin(MemoryAdmin):
    """Criteria by which threads are scored."""

    list_display = ["name", "kind", "minimum", "maximum", "active", "position"]
    list_filter = ["kind", "active"]
    fieldsets = [
        (None, {"fields": ["name", "help_text", "kind", "active", "position"]}),
        (_("Scale of a number"), {"fields": ["minimum", "maximum"]}),
        (_("Choices"), {"fields": ["choices"]}),
    ]
