"""Model usage: all calls, and totals by day and model."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access
from mastra_memory.admin.base import ReadOnlyAdmin
from mastra_memory.admin.changelist import BoundedPaginator
from mastra_memory.models import ModelUsage

MAX_DAYS = 31
"""Rows of the table of totals."""


class ModelUsageAdmin(ReadOnlyAdmin):
    """Read-only list of model calls of visible threads and resources."""

    list_display = [
        "created_at",
        "purpose",
        "model",
        "input_tokens",
        "output_tokens",
        "cost",
        "thread_link",
    ]
    readonly_fields = [
        "thread_link",
        "resource_id",
        "purpose",
        "model",
        "input_tokens",
        "output_tokens",
        "cost",
        "created_at",
    ]
    fields = tuple(readonly_fields)
    list_filter = ["purpose", "created_at"]
    search_fields = ["=thread__id", "=resource_id", "=model"]
    search_help_text = _("The id of a thread or a resource, or a model")
    ordering = ["-created_at", "-pk"]
    sortable_by = ()
    paginator = BoundedPaginator
    show_full_result_count = False
    change_list_template = "admin/mastra_memory/model_usage.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelUsage]:
        """Return the calls of visible threads and resources."""
        return access.filter_by_visible_threads(request, super().get_queryset(request))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Add the totals of all calls that match the filters."""
        response: Any = super().changelist_view(request, extra_context)
        changelist = getattr(response, "context_data", {}).get("cl")
        if changelist is not None:
            calls: Any = changelist.queryset.order_by()
            response.context_data |= {"totals": calls.totals(), "days": calls.per_day()[:MAX_DAYS]}
        return response
