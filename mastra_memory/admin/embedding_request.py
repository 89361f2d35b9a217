"""Messages that wait for embedding: their state, their errors, and retrying them."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from mastra_memory.admin import access
from mastra_memory.admin.base import ReadOnlyAdmin
from mastra_memory.admin.changelist import BoundedPaginator
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest


class StateFilter(admin.SimpleListFilter):
    """Filter by state: waiting, failed once, given up."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the choices."""
        return [
            ("pending", _("waiting")),
            ("retrying", _("failed once")),
            ("failed", _("given up")),
        ]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[EmbeddingRequest]
    ) -> QuerySet[EmbeddingRequest]:
        """Apply the chosen state."""
        match self.value():
            case "pending":
                return queryset.filter(failed_at=None, error="")
            case "retrying":
                return queryset.filter(failed_at=None).exclude(error="")
            case "failed":
                return queryset.exclude(failed_at=None)
        return queryset


class EmbeddingRequestAdmin(ReadOnlyAdmin):
    """Read-only list of embedding requests. A row is deleted when its message is embedded."""

    readonly_fields = [
        "message_id",
        "thread_link",
        "resource_id",
        "model",
        "created_at",
        "due_at",
        "attempts",
        "fault",
        "failed_at",
    ]
    fields = tuple(readonly_fields)
    list_filter = [StateFilter]
    search_fields = ["=message__id", "=thread_id", "=resource_id"]
    search_help_text = _("The id of a message, a thread or a resource")
    ordering = ["-failed_at", "due_at", "pk"]
    sortable_by = ()
    paginator = BoundedPaginator
    show_full_result_count = False
    actions = ["retry"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EmbeddingRequest]:
        """Return the requests of visible threads."""
        threads = access.visible_threads(request).order_by().values("pk")
        return super().get_queryset(request).filter(thread_id__in=threads)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns. Errors are masked, since they may quote the embedded text."""
        mask = access.get_mask(request.user)

        @admin.display(description=_("last error"))
        def fault(row: EmbeddingRequest) -> str:
            return escape_bidi_overrides(mask(row.error))[:300]

        return ["message_id", "thread_link", "model", "attempts", fault, "due_at", "failed_at"]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return the row with its error masked for the user.

        Django passes only the row to the methods of read-only fields. The row is not saved here.
        """
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.error = escape_bidi_overrides(access.get_mask(request.user)(row.error))
        return row

    @admin.display(description=_("last error"))
    def fault(self, row: EmbeddingRequest) -> str:
        """Return the error of the last attempt."""
        return row.error

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Return True if the user may change embedding requests."""
        return access.has_permission(request.user, "change_embeddingrequest")

    @admin.action(description=_("Try again"), permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[EmbeddingRequest]) -> None:
        """Retry the failed requests among the selected ones, starting at the first attempt."""
        count = Memory().retry_embeddings(list(queryset.values_list("pk", flat=True)))
        text = ngettext("%d message will be retried.", "%d messages will be retried.", count)
        self.message_user(request, text % count, messages.SUCCESS)
