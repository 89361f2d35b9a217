"""Observational records, to read: one generation with its chunks."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access
from mastra_memory.admin.base import ReadOnlyAdmin
from mastra_memory.admin.changelist import BoundedPaginator
from mastra_memory.admin.markdown import harmless
from mastra_memory.admin.markdown import render as markdown
from mastra_memory.models import ObservationalRecord, ObservationChunk


def _shown(request: HttpRequest, text: str) -> SafeString:
    html = markdown(access.mask_of(request.user)(text)[:100_000])
    return format_html('<div class="mm-prose" dir="auto">{}</div>', html)


class ChunkInline(admin.StackedInline):
    """Observations that wait for their activation."""

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

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Remember who reads, for the mask."""
        self.request = request
        return super().get_formset(request, obj, **kwargs)

    @admin.display(description=_("observations"))
    def text(self, chunk: ObservationChunk) -> SafeString:
        """The observations, as this reader may see them."""
        return _shown(self.request, chunk.observations)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may see the record may see its chunks."""
        return access.may(request.user, "view_observationalrecord")


@admin.register(ObservationalRecord)
class ObservationalRecordAdmin(ReadOnlyAdmin):
    """Records of threads and resources that the reader may see."""

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
        """What belongs to visible threads."""
        return access.of_visible_threads(request, super().get_queryset(request))

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Lay the reader's mask beside the row."""
        record = super().get_object(request, object_id, from_field)
        if record is not None:
            record.shown = lambda text: _shown(request, text)
        return record

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """The columns, titles masked for this reader."""
        mask = access.mask_of(request.user)

        @admin.display(description=_("about"))
        def name(record: ObservationalRecord) -> str:
            return harmless(mask(str(record.thread or record.resource_id)))[:100]

        rest = ["scope", "generation_count", "origin_type", "tokens", "updated_at"]
        return [name, *rest]

    @admin.display(description=_("tokens"))
    def tokens(self, record: ObservationalRecord) -> int:
        """How long the observations are."""
        return record.observation_token_count

    @admin.display(description=_("observations"))
    def text(self, record: Any) -> SafeString:
        """The observations, as this reader may see them."""
        return record.shown(record.active_observations)

    @admin.display(description=_("prepared reflection"))
    def reflection(self, record: Any) -> SafeString:
        """A reflection that waits for its activation."""
        return record.shown(record.buffered_reflection)
