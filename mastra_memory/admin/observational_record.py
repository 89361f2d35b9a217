"""Observational records: the log, its batches, what happened to it, and corrections."""

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import (
    access,
    observation_actions,
    observation_batches,
    observation_chart,
    observation_history,
    observation_log,
    observation_status,
)
from mastra_memory.admin.base import secure_view
from mastra_memory.admin.changelist import (
    BoundedPaginator,
    TruncatedChangeList,
    annotate_thread_title,
    get_thread_label,
)
from mastra_memory.admin.conversation import conversation_url, record_url
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.plain_text import PlainTextAdmin, iterate_record_texts
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.admin.urls import reverse_page
from mastra_memory.content.redaction import mask_beginning
from mastra_memory.exceptions import MastraMemoryError, StaleData
from mastra_memory.models import ObservationalRecord
from mastra_memory.review import observations

TEMPLATES = "admin/mastra_memory/observational_record"
VIEWS = {
    "log": _("Log"),
    "batches": _("Batches"),
    "generations": _("Generations"),
    "events": _("Timeline"),
}
"""The parts of the page, each at its own address: `?view=`."""
CHART_VIEWS = ("log", "events")
"""The parts with the chart above them."""
Loader = Callable[[HttpRequest, ObservationalRecord, RenderBudget], Any]
_LOADERS: dict[str, Loader] = {
    "batches": observation_batches.load_batches,
    "generations": observation_history.load_generations,
    "events": observation_history.load_events,
}


class ObservationalRecordAdmin(PlainTextAdmin):
    """The records of visible threads and resources. Their logs are corrected through `Memory`."""

    text_heading = _("Observations")
    list_filter = ["scope", "origin_type"]
    search_fields = ["=thread__id", "=resource_id"]
    search_help_text = _("The id of a thread or a resource")
    ordering = ["-pk"]
    sortable_by = ()
    list_select_related = ["thread"]
    paginator = BoundedPaginator
    show_full_result_count = False

    def get_urls(self) -> list[URLPattern]:
        """Return the URL patterns. Django's last pattern matches any path, so ours comes first."""
        view = secure_view(self.admin_site.admin_view(self.action_view))
        name = "mastra_memory_observationalrecord_do"
        return [path("<path:object_id>/do/<slug:verb>/", view, name=name), *super().get_urls()]

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
        return annotate_thread_title(rows).defer(*long, "pinned", "error")

    def iterate_texts(self, request: HttpRequest, row: Any) -> Iterator[str]:
        """Yield the texts for the page with plain text."""
        return iterate_record_texts(row, observation_log.find_hidden_threads(request, row))

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns. Titles are masked for the user."""
        mask = access.get_mask(request.user)

        @admin.display(description=_("about"))
        def name(record: Any) -> str:
            return escape_bidi_overrides(mask_beginning(get_thread_label(record), mask, 100))

        return [name, "scope", "generation_count", "live", "origin_type", "tokens", "updated_at"]

    @admin.display(description=_("current"), boolean=True)
    def live(self, record: ObservationalRecord) -> bool:
        """Return whether it is the current generation."""
        return record.is_live

    @admin.display(description=_("tokens"))
    def tokens(self, record: ObservationalRecord) -> int:
        """Return the number of tokens of the observations."""
        return record.observation_token_count

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show one part of the record: the log, batches, generations or events."""
        record = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, record):
            raise PermissionDenied
        if record is None:
            return super().change_view(request, object_id, form_url, extra_context)  # redirects
        if request.method == "POST":
            raise PermissionDenied
        view = request.GET.get("view", "log")
        view = view if view in VIEWS else "log"
        budget = RenderBudget()
        context = self._build_header(request, record, view, budget)
        if view == "log":
            hidden = observation_log.find_hidden_threads(request, record)
            context["page"] = observation_log.load_log(request, record, hidden, budget)
            context["reflection"] = budget.render_prose(
                observations.remove_threads(record.buffered_reflection, hidden),
                access.get_mask(request.user),
            )
        else:
            context["page"] = _LOADERS[view](request, record, budget)
        return TemplateResponse(request, f"{TEMPLATES}/{view}.html", context)

    def _build_header(
        self, request: HttpRequest, record: ObservationalRecord, view: str, budget: RenderBudget
    ) -> dict[str, Any]:
        """Return the context that all parts of the page share."""
        newest = observations.list_generations(record).values_list("pk", "generation_count")
        live_id, newest_number = newest.first() or (record.pk, record.generation_count)
        state = observation_status.load_state(request, record, budget) if record.is_live else None
        threshold = state.meters[1].threshold if state and state.meters else None
        return {
            **self._build_page(request, record),
            "state": state,
            "chart": observation_chart.load_chart(record, threshold)
            if view in CHART_VIEWS
            else None,
            "newest_number": newest_number,
            "live_href": "" if record.is_live else record_url(live_id, view=view),
            "view": view,
            "views": [
                (name, label, record_url(record.pk, view=name)) for name, label in VIEWS.items()
            ],
            "author": budget.render_text(
                record.created_by_name, access.get_mask(request.user), 150
            )[0],
        }

    def _build_page(self, request: HttpRequest, record: ObservationalRecord) -> dict[str, Any]:
        mask = access.get_mask(request.user)
        thread_title = record.thread.title if record.thread_id and record.thread else ""
        label = thread_title or record.thread_id or record.resource_id
        can_edit = access.has_permission(request.user, "edit_transcript")
        return {
            **self.admin_site.each_context(request),
            "is_nav_sidebar_enabled": False,
            "opts": self.opts,
            "title": _("Observations"),
            "record": record,
            "label": escape_bidi_overrides(mask_beginning(label, mask, 200)) or record.pk,
            "thread_href": conversation_url(record.thread_id) if record.thread_id else "",
            "record_path": quote(record.pk),
            "text_href": reverse_page(
                "mastra_memory_observationalrecord_text", args=[quote(record.pk)]
            ),
            "can_edit": can_edit,
            "can_correct": can_edit and record.is_live,
        }

    def action_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponseBase:
        """Handle a form of the page, then redirect to the record as it is now.

        If the observations have changed meanwhile, answer 409 and show what the user has typed.
        """
        record = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, record):
            raise PermissionDenied
        if record is None or verb not in observation_actions.VERBS or request.method != "POST":
            raise Http404
        try:
            result = observation_actions.run_action(request, record, verb)
        except StaleData as error:
            return self._show_conflict(request, record, verb, error)
        except MastraMemoryError as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(record_url(record.pk))
        messages.success(request, result.message)
        target = record_url(result.record_id, line=result.line)
        anchor = f"#o{result.line}" if result.line is not None else ""
        return HttpResponseRedirect(target + anchor)

    def _show_conflict(
        self, request: HttpRequest, record: ObservationalRecord, verb: str, error: StaleData
    ) -> HttpResponseBase:
        live = observations.list_generations(record).values_list("pk", flat=True).first()
        context = {
            **self._build_page(request, record),
            "reason": str(error),
            "typed": request.POST.get("text", "") if verb == "edit" else "",
            "live_href": record_url(live or record.pk),
        }
        return TemplateResponse(request, f"{TEMPLATES}/conflict.html", context, status=409)
