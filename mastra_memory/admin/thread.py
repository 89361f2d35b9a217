"""Threads: the list of conversations, and the conversation page."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access, bulk_actions, changelist, conversation, edits, saved_views
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.thread_filters import ThreadFilter
from mastra_memory.admin.thread_views import TEMPLATES, ThreadPages
from mastra_memory.content.redaction import mask_beginning
from mastra_memory.db import json_text
from mastra_memory.models import Review, Thread
from mastra_memory.review import history


class ThreadAdmin(bulk_actions.BulkActions, ThreadPages):
    """The thread list, with the pages of a conversation from `ThreadPages`."""

    list_display = ["conversation", "resource", "messages", "active", "status", "assignee", "tags"]
    list_filter = [ThreadFilter]
    search_fields = ["id"]
    search_help_text = _("Words of a message or a title, or an id")
    ordering = ["-updated_at", "-id"]
    sortable_by = ["active"]
    list_per_page = 50
    list_max_show_all = 0
    list_display_links = None
    paginator = changelist.BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    change_list_template = f"{TEMPLATES}/list.html"

    # Permissions

    def get_queryset(self, request: HttpRequest) -> QuerySet[Thread]:
        """Return the threads that the user may see."""
        threads = access.visible_threads(request).select_related("review")
        ordering = self.get_ordering(request)
        return threads.prefetch_related("thread_tags__tag").order_by(*ordering)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: threads are not created here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        """Return True if the user may edit transcripts."""
        return access.has_permission(request.user, "edit_transcript")

    def has_view_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        """Return True if the user may view threads. Other permissions do not imply it."""
        return access.has_permission(request.user, "view_thread")

    def has_delete_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        """Return True if the user may both delete and view threads."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and self.has_view_permission(request)

    # The list

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type:
        """Return the change list class of this list."""
        return changelist.ThreadChangeList

    def defer_long_columns(self, threads: QuerySet[Thread]) -> QuerySet[Thread]:
        """Leave out long columns, with `short_title` in place of the title."""
        threads = threads.defer("title", "metadata", "title_request", "title_error")
        return threads.annotate(short_title=changelist.truncate_title())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Thread], search_term: str
    ) -> tuple[QuerySet[Thread], bool]:
        """Search through the word index, never with LIKE."""
        search_term = json_text.clean_text(search_term)
        if search_term.strip():
            queryset, _found = changelist.search_threads(request, queryset, search_term)
        if request.resolver_match and request.resolver_match.url_name == "autocomplete":
            queryset = changelist.mask_titles(request, queryset)
        return queryset, False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Show the list. Without a query string, redirect to the default view of the user."""
        if redirect := saved_views.redirect_to_default_view(request):
            return redirect
        more = {
            "can_export": access.has_permission(request.user, "export_thread"),
            "is_nav_sidebar_enabled": False,
        }
        context = {**saved_views.get_view_context(request), **more, **(extra_context or {})}
        return super().changelist_view(request, context)

    def action_checkbox(self, obj: Any) -> Any:
        """Return the checkbox. Django's label would contain the unmasked title."""
        name = escape_bidi_overrides(obj.row.title)[:200] or obj.pk
        label = gettext("Select this conversation: %s") % name
        attributes = {"class": "action-select", "aria-label": label}
        box = forms.CheckboxInput(attributes, lambda value: False)
        return box.render(ACTION_CHECKBOX_NAME, str(obj.pk))

    @admin.display(description=_("conversation"))
    def conversation(self, thread: Any) -> str:
        """Return the title, followed by the matching passage or the newest message."""
        row = thread.row
        href = conversation.conversation_url(thread.pk, at=row.passage_id)
        return format_html(
            '<a class="mm-title" href="{}"><bdi>{}</bdi></a>{}'
            '<span class="mm-preview" dir="auto">{}{}</span>',
            href,
            escape_bidi_overrides(row.title)[:200] or thread.pk,
            format_html(' <span class="mm-unread">{}</span>', gettext("new messages"))
            if row.has_unread
            else "",
            format_html("<b>{}:</b> ", row.role) if row.role and not row.passage else "",
            row.passage or escape_bidi_overrides(row.preview),
        )

    @admin.display(description=_("resource"))
    def resource(self, thread: Thread) -> str:
        """Return the resource, linked to the list of its threads."""
        query = urlencode({"resource": thread.resource_id})
        return format_html(
            '<a href="?{}"><bdi>{}</bdi></a>', query, escape_bidi_overrides(thread.resource_id)
        )

    @admin.display(description=_("messages"))
    def messages(self, thread: Any) -> str:
        """Return the number of messages, counted up to a thousand."""
        messages: str = thread.row.messages
        return messages

    @admin.display(description=_("last activity"), ordering="updated_at")
    def active(self, thread: Thread) -> Any:
        """Return the time of the last activity."""
        return thread.updated_at

    @admin.display(description=_("status"))
    def status(self, thread: Thread) -> str:
        """Return the status and priority of the review."""
        review = getattr(thread, "review", None) or Review(thread_id=thread.pk)
        mark = {2: " ▲", 3: " ▲▲"}.get(review.priority, "")
        return format_html(
            '<span class="mm-status mm-{}">{}</span>{}',
            review.status,
            review.get_status_display(),
            format_html('<span title="{}">{}</span>', review.get_priority_display(), mark)
            if mark
            else "",
        )

    @admin.display(description=_("assignee"), empty_value="–")
    def assignee(self, thread: Any) -> str | None:
        """Return the name of the assignee."""
        return thread.row.assignee or None

    @admin.display(description=_("tags"))
    def tags(self, thread: Any) -> str:
        """Return the tags as links."""
        names = sorted(link.tag.name for link in thread.thread_tags.all())
        return changelist.render_tag_links(names)

    # Deleting

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Return what is deleted with the threads.

        The database deletes related rows, so Django does not find them.
        """
        mask = access.get_mask(request.user)
        threads = list(objs)
        names = [
            escape_bidi_overrides(mask_beginning(str(thread), mask, 120)) for thread in threads
        ]
        counts = history.count_related_rows([thread.pk for thread in threads])
        may_delete = self.has_delete_permission(request)
        perms_needed = set() if may_delete else {str(self.opts.verbose_name)}
        return names, counts, perms_needed, []

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> Any:
        """Show the confirmation page with the title masked for the user. It is not saved."""
        thread = context["object"]
        mask = access.get_mask(request.user)
        thread.title = escape_bidi_overrides(
            mask_beginning(thread.title, mask, changelist.TITLE_CHARACTERS)
        )
        return super().render_delete_form(request, context)

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> Any:
        """Mask the title in the success message."""
        mask = access.get_mask(request.user)
        shown = escape_bidi_overrides(
            mask_beginning(obj_display, mask, changelist.TITLE_CHARACTERS)
        )
        return super().response_delete(request, shown, obj_id)

    def delete_model(self, request: HttpRequest, obj: Thread) -> None:
        """Delete the thread through `Memory`."""
        edits.delete_thread(obj, by=request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Thread]) -> None:
        """Delete each thread through `Memory`."""
        for thread in queryset:
            edits.delete_thread(thread, by=request.user)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Do nothing: deleting a thread through `edits` logs it already."""

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Show Django's log, which is not masked, to users who may see personal data."""
        self._thread(request, object_id)
        if not access.has_permission(request.user, "view_personal_data"):
            raise PermissionDenied
        return super().history_view(request, object_id, extra_context)
