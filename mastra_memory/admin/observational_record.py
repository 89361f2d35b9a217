"""Observational records: one generation with its chunks, read-only."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access
from mastra_memory.admin.changelist import (
    BoundedPaginator,
    TruncatedChangeList,
    annotate_thread_title,
    get_thread_label,
)
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.plain_text import PlainTextAdmin, iterate_record_texts
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.content.redaction import mask_beginning
from mastra_memory.models import ObservationalRecord, ObservationChunk


def _budget(request: Any) -> RenderBudget:
    """Return the budget of the page, which the texts of the record and its chunks share.

    It is kept on the request: Django builds the page in several methods that share nothing else.
    """
    if not hasattr(request, "render_budget"):
        request.render_budget = RenderBudget()
    budget: RenderBudget = request.render_budget
    return budget


def _render_prose(request: HttpRequest, text: str, record_id: Any) -> SafeString:
    prose = _budget(request).render_prose(text, access.get_mask(request.user))
    href = reverse("admin:mastra_memory_observationalrecord_text", args=[quote(record_id)])
    context = {"prose": prose, "text_href": href}
    return mark_safe(render_to_string("admin/mastra_memory/prose.html", context))  # escaped there


if TYPE_CHECKING:
    _StackedInline = admin.StackedInline[ObservationChunk, ObservationalRecord]
else:  # Django's class takes no type arguments when it runs.
    _StackedInline = admin.StackedInline


class ChunkInline(_StackedInline):
    """Buffered observations that are not active yet."""

    model = ObservationChunk
    extra = 0
    can_delete = False
    show_change_link = False
    fields = readonly_fields = (
        "position",
        "token_count",
        "message_tokens",
        "last_observed_at",
        "text",
    )
    ordering = ["position"]
    verbose_name_plural = _("chunks")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ObservationChunk]:
        """Leave out activated chunks: their text is part of the observations."""
        return super().get_queryset(request).filter(activated_at=None)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Keep the request, which `text` needs for the mask. Django makes an inline per request."""
        self.request = request
        return super().get_formset(request, obj, **kwargs)

    @admin.display(description=_("observations"))
    def text(self, chunk: ObservationChunk) -> SafeString:
        """Return the observations, masked for the user."""
        return _render_prose(self.request, chunk.observations, chunk.record_id)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: chunks are read-only."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: chunks are read-only."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return True if the user may view the record."""
        return access.has_permission(request.user, "view_observationalrecord")


@admin.register(ObservationalRecord)
class ObservationalRecordAdmin(PlainTextAdmin):
    """Read-only list of the records of visible threads and resources."""

    text_heading = _("Observations")
    list_filter = ["scope", "origin_type"]
    search_fields = ["=thread__id", "=resource_id"]
    search_help_text = _("The id of a thread or a resource")
    ordering = ["-pk"]
    sortable_by = ()
    list_select_related = ["thread"]
    paginator = BoundedPaginator
    show_full_result_count = False
    inlines = [ChunkInline]
    readonly_fields = ["thread_link", "text", "reflection"]
    fieldsets = [
        (None, {"fields": ["thread_link", "resource_id", "scope", "generation_count", "text"]}),
        (
            _("State"),
            {
                "fields": [
                    "origin_type",
                    "observation_token_count",
                    "pending_message_tokens",
                    "total_tokens_observed",
                    "last_observed_at",
                    "reflection",
                    "config",
                    "created_at",
                    "updated_at",
                ]
            },
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ObservationalRecord]:
        """Return the records of visible threads and resources."""
        return access.filter_by_visible_threads(request, super().get_queryset(request))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type:
        """Return a list that reads only the beginning of long columns."""
        return TruncatedChangeList

    def defer_long_columns(
        self, rows: QuerySet[ObservationalRecord]
    ) -> QuerySet[ObservationalRecord]:
        """Leave out long columns, with `thread_title` in place of the title."""
        long = ("active_observations", "buffered_reflection", "observed_message_ids", "metadata")
        return annotate_thread_title(rows).defer(*long)

    def iterate_texts(self, row: Any) -> Iterator[str]:
        """Yield the texts for the page with plain text."""
        return iterate_record_texts(row)

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return the record with a function `shown` that masks and renders a text for the user.

        Django passes only the record to the methods of read-only fields.
        """
        record = super().get_object(request, object_id, from_field)
        if record is not None:
            record.shown = lambda text: _render_prose(request, text, record.pk)
        return record

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns. Titles are masked for the user."""
        mask = access.get_mask(request.user)

        @admin.display(description=_("about"))
        def name(record: Any) -> str:
            return escape_bidi_overrides(mask_beginning(get_thread_label(record), mask, 100))

        rest = ["scope", "generation_count", "origin_type", "tokens", "updated_at"]
        return [name, *rest]

    @admin.display(description=_("tokens"))
    def tokens(self, record: ObservationalRecord) -> int:
        """Return the number of tokens of the observations."""
        return record.observation_token_count

    @admin.display(description=_("observations"))
    def text(self, record: Any) -> SafeString:
        """Return the observations, masked for the user."""
        shown: SafeString = record.shown(record.active_observations)
        return shown

    @admin.display(description=_("prepared reflection"))
    def reflection(self, record: Any) -> SafeString:
        """Return the buffered reflection, masked for the user."""
        shown: SafeString = record.shown(record.buffered_reflection)
        return shown
