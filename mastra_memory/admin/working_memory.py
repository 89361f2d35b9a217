"""Working memory: the current text and its revisions."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access, conversation, working_memory_panel
from mastra_memory.admin.changelist import (
    BoundedPaginator,
    TruncatedChangeList,
    annotate_thread_title,
    get_thread_label,
)
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.plain_text import PlainTextAdmin, iterate_memory_texts
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.admin.urls import reverse_page
from mastra_memory.content.redaction import MAX_MATCH_CHARS, mask_beginning
from mastra_memory.models import WorkingMemory

PREVIEW_TEMPLATE = "admin/mastra_memory/thread/memory_edit.html"


class WorkingMemoryAdmin(PlainTextAdmin):
    """List of the working memories of visible threads and resources, with an editing page."""

    text_heading = _("Working memory")
    list_filter = ["scope"]
    search_fields = ["=thread__id", "=resource_id"]
    search_help_text = _("The id of a thread or a resource")
    ordering = ["-pk"]
    sortable_by = ()
    list_select_related = ["thread"]
    paginator = BoundedPaginator
    show_full_result_count = False
    change_form_template = "admin/mastra_memory/working_memory.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkingMemory]:
        """Return the working memories of visible threads and resources."""
        return access.filter_by_visible_threads(request, super().get_queryset(request))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type:
        """Return a list that reads only the beginning of long columns."""
        return TruncatedChangeList

    def defer_long_columns(self, rows: QuerySet[WorkingMemory]) -> QuerySet[WorkingMemory]:
        """Leave out long columns, with `beginning` and `thread_title` in their place."""
        beginning = Left("content", 120 + 2 * MAX_MATCH_CHARS)
        rows = annotate_thread_title(rows).defer("content")
        return rows.annotate(beginning=beginning)

    def iterate_texts(self, request: HttpRequest, row: Any) -> Iterator[str]:
        """Yield the texts for the page with plain text."""
        return iterate_memory_texts(row.content)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns. Texts are masked for the user."""
        mask = access.get_mask(request.user)

        @admin.display(description=_("about"))
        def name(row: Any) -> str:
            return escape_bidi_overrides(mask_beginning(get_thread_label(row), mask, 100))

        @admin.display(description=_("text"))
        def beginning(row: Any) -> str:
            return escape_bidi_overrides(mask_beginning(row.beginning, mask, 120))

        return [name, "scope", beginning, "version", "updated_at"]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show the text and its revisions, with a form for users who may edit it."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return HttpResponseRedirect(reverse_page("mastra_memory_workingmemory_changelist"))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": _("Working memory"),
            "opts": self.opts,
        }
        if "preview" in request.POST:
            context |= working_memory_panel.build_preview(request, row, back=request.path)
            return TemplateResponse(request, PREVIEW_TEMPLATE, context)
        if request.method == "POST":
            return working_memory_panel.save_change(request, row, back=request.path)
        context |= {
            "original": row,
            "memory": working_memory_panel.build_panel(
                request,
                row,
                RenderBudget(),
                text_href=reverse_page("mastra_memory_workingmemory_text", args=[row.pk]),
            ),
            "can_edit": access.has_permission(request.user, "edit_transcript"),
            "action": request.path,
            "thread_href": conversation.conversation_url(row.thread_id) if row.thread_id else "",
        }
        return TemplateResponse(request, self.change_form_template, context)
