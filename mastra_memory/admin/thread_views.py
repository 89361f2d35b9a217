"""The pages of a conversation, and the permission that each requires."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import (
    access,
    attachments,
    conversation,
    exports,
    message_editor,
    review_actions,
    saved_views,
    sidebar,
    team_statistics,
    text_page,
    working_memory_panel,
)
from mastra_memory.admin.base import MemoryAdmin, secure_view
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.content.redaction import mask_beginning
from mastra_memory.db.users import get_user_id, get_usernames
from mastra_memory.exceptions import MastraMemoryError
from mastra_memory.models import Thread, WorkingMemory
from mastra_memory.review import conversation_pages, notes, reviews, visits

TEMPLATES = "admin/mastra_memory/thread"


class ThreadPages(MemoryAdmin):
    """Mixin with the pages of the thread admin other than the list."""

    def get_urls(self) -> list[URLPattern]:
        """Return the URL patterns. Django's last pattern matches any path, so ours come first."""
        view = self.admin_site.admin_view
        own = [
            # This pattern comes first: its key may contain slashes and end like another pattern.
            path(
                "<path:object_id>/text/<slug:what>/<path:key>/",
                self.text_view,
                name="mastra_memory_thread_text",
            ),
            path("team/", self.team_view, name="mastra_memory_thread_team"),
            path("views/", self.saved_views_view, name="mastra_memory_thread_views"),
            path("exports/", self.exports_view, name="mastra_memory_thread_exports"),
            path("exports/<int:pk>/", self.export_view, name="mastra_memory_thread_export"),
            path(
                "<path:object_id>/export/",
                self.export_thread_view,
                name="mastra_memory_thread_export_one",
            ),
            path("next/", self.next_view, name="mastra_memory_thread_next"),
            path(
                "<path:object_id>/do/<slug:verb>/", self.action_view, name="mastra_memory_thread_do"
            ),
            path(
                "<path:object_id>/edit/<slug:what>/",
                self.edit_view,
                name="mastra_memory_thread_edit",
            ),
            path(
                "<path:object_id>/memory/<int:pk>/",
                self.memory_view,
                name="mastra_memory_thread_memory",
            ),
            path(
                "<path:object_id>/file/<int:sequence>/<int:index>/",
                self.file_view,
                name="mastra_memory_thread_file",
            ),
            path(
                "<path:object_id>/here/", self.presence_view, name="mastra_memory_thread_presence"
            ),
            path("<path:object_id>/print/", self.print_view, name="mastra_memory_thread_print"),
        ]
        for pattern in own:
            pattern.callback = secure_view(view(pattern.callback))
        return [*own, *super().get_urls()]

    def _thread(self, request: HttpRequest, object_id: str) -> Thread:
        """Return the thread, or raise `Http404` if it does not exist or is not visible."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        thread = access.visible_threads(request).filter(pk=unquote(object_id)).first()
        if thread is None:
            raise Http404
        return thread

    def _page(
        self, request: HttpRequest, thread: Thread | None, template: str, **context: Any
    ) -> TemplateResponse:
        title = context.pop("title", None)
        mask = access.get_mask(request.user)
        if thread is not None:
            title = (
                title or escape_bidi_overrides(mask_beginning(thread.title, mask, 200)) or thread.pk
            )
            context |= {"thread": thread, "thread_path": quote(thread.pk)}
        rights = {
            "own_id": get_user_id(request.user),
            "can_review": access.has_permission(request.user, "review_thread"),
            "can_edit": access.has_permission(request.user, "edit_transcript"),
            "can_export": access.has_permission(request.user, "export_thread"),
            "can_delete": self.has_delete_permission(request),
        }
        whole = {
            **self.admin_site.each_context(request),
            "is_nav_sidebar_enabled": False,
            "opts": self.opts,
            "title": title,
            **rights,
            **context,
        }
        return TemplateResponse(request, f"{TEMPLATES}/{template}.html", whole)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show the conversation, and record that the user has read it."""
        thread = self._thread(request, object_id)
        mask = access.get_mask(request.user)
        all_notes = notes.list_notes(thread.pk, mask=lambda text: escape_bidi_overrides(mask(text)))
        budget = RenderBudget()
        timeline = conversation.load_timeline(request, thread, all_notes, budget)
        if "part" in request.GET:
            return self._page(request, thread, "part", timeline=timeline)
        panels = sidebar.build_panels(request, thread, all_notes, budget)
        response = self._page(request, thread, "conversation", timeline=timeline, **panels)
        newest = timeline.newest_message
        seen = newest.created_at if newest else None
        visits.record_visit(thread.pk, request.user, read_up_to=seen)
        return response.render()

    def action_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponseBase:
        """Handle a form of the page, then redirect to the page or to the next conversation."""
        thread = self._thread(request, object_id)
        if verb not in review_actions.ACTIONS or request.method != "POST":
            raise Http404
        try:
            result = review_actions.run_action(request, thread, verb)
        except MastraMemoryError as error:
            messages.error(request, str(error))
        else:
            if isinstance(result, review_actions.CopyResult):
                messages.success(request, result.message)
                return HttpResponseRedirect(conversation.conversation_url(result.thread_id))
            if result:
                messages.success(request, result)
            if review_actions.goes_to_next(request):
                return _redirect_whole_page(request, self._to_next(request, thread.pk))
        return HttpResponseRedirect(
            conversation.conversation_url(thread.pk, at=request.POST.get("at", ""))
        )

    def next_view(self, request: HttpRequest) -> HttpResponseBase:
        """Redirect to the next conversation in the queue of the user.

        With `?free`, redirect to the next unassigned conversation.
        """
        return self._to_next(request, request.GET.get("after"), unassigned="free" in request.GET)

    def _to_next(
        self, request: HttpRequest, current: str | None, *, unassigned: bool = False
    ) -> HttpResponseRedirect:
        if not self.has_view_permission(request):
            raise PermissionDenied
        threads = access.visible_threads(request)
        if unassigned:
            found = reviews.find_unassigned_thread(threads, skip=[current] if current else [])
        else:
            found = reviews.find_next(reviews.list_queue(request.user, threads), current)
        if found is None:
            messages.info(request, review_actions.describe_empty_queue(unassigned=unassigned))
            return HttpResponseRedirect(saved_views.list_url(all="1"))
        return HttpResponseRedirect(conversation.conversation_url(found))

    def presence_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Record that the user is viewing the page; return what is new, and who else is here."""
        thread = self._thread(request, object_id)
        visits.record_visit(thread.pk, request.user)
        review = reviews.get_review(thread.pk)
        known, newest = request.GET.get("version", ""), read_integer(request.GET.get("notes"))
        changed_by_id = review.changed_by_id if known != str(review.version) else None
        return self._page(
            request,
            thread,
            "presence",
            others_here=visits.list_other_viewers(thread.pk, request.user),
            new_messages=conversation_pages.count_messages_after(
                thread.pk, request.GET.get("newest", "")
            ),
            changed_by=", ".join(get_usernames(filter(None, [changed_by_id])).values()),
            new_notes=notes.count_notes_after(thread.pk, newest) if newest is not None else 0,
        )

    def edit_view(self, request: HttpRequest, object_id: str, what: str) -> HttpResponseBase:
        """Edit the title, the metadata or the text of a message."""
        thread = self._thread(request, object_id)
        if not self.has_change_permission(request):
            raise PermissionDenied
        outcome = message_editor.handle_edit(request, thread, what)
        if outcome is None:
            refused = self._page(request, thread, "masked", crumb=_("Edit"))
            refused.status_code = 403
            return refused
        if isinstance(outcome, str):
            messages.success(request, _("Saved. You can undo this under History."))
            return HttpResponseRedirect(conversation.conversation_url(thread.pk, at=outcome))
        return self._page(request, thread, "edit", crumb=outcome["heading"], **outcome)

    def memory_view(self, request: HttpRequest, object_id: str, pk: int) -> HttpResponseBase:
        """Preview, save or restore a working memory of the thread or its resource."""
        thread = self._thread(request, object_id)
        row = WorkingMemory.objects.filter(pk=pk, resource_id=thread.resource_id).first()
        if row is None or row.thread_id not in (None, thread.pk) or request.method != "POST":
            raise Http404
        back = conversation.conversation_url(thread.pk)
        if "preview" in request.POST:
            shown = working_memory_panel.build_preview(request, row, back=back)
            return self._page(request, thread, "memory_edit", crumb=_("Working memory"), **shown)
        return working_memory_panel.save_change(request, row, back=back)

    def file_view(
        self, request: HttpRequest, object_id: str, sequence: int, index: int
    ) -> HttpResponseBase:
        """Return a file of a message."""
        return attachments.attachment_response(
            request, self._thread(request, object_id), sequence, index
        )

    def text_view(
        self, request: HttpRequest, object_id: str, what: str, key: str
    ) -> HttpResponseBase:
        """Show a complete text of the conversation as plain text."""
        thread = self._thread(request, object_id)
        shown = text_page.load_text_page(request, thread, what, unquote(key))
        return self._page(request, thread, "text", crumb=shown["heading"], **shown)

    def print_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show the conversation for printing."""
        thread = self._thread(request, object_id)
        if not access.has_permission(request.user, "export_thread"):
            raise PermissionDenied
        printed = conversation.load_printed_conversation(request, thread)
        return self._page(request, thread, "print", crumb=_("Print"), **printed)

    def exports_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the exports of the user with their progress."""
        if not access.has_permission(request.user, "export_thread"):
            raise PermissionDenied
        if request.method == "POST":
            return exports.restart_export(request)
        context = exports.list_exports(request)
        template = "_exports" if "part" in request.GET else "exports"
        return self._page(request, None, template, title=_("Exports"), **context)

    def export_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Return the file of an export."""
        if not access.has_permission(request.user, "export_thread"):
            raise PermissionDenied
        return exports.download_export(request, pk)

    def export_thread_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Export one conversation."""
        thread = self._thread(request, object_id)
        if request.method != "POST":
            raise Http404
        return exports.start_export(request, [thread.pk], request.POST.get("format", ""))

    def team_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the statistics of the team."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        figures = team_statistics.get_statistics(request)
        return self._page(request, None, "team", title=_("Team"), **figures)

    def saved_views_view(self, request: HttpRequest) -> HttpResponseBase:
        """Save, delete or choose a view of the list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return saved_views.change_views(request)


def _redirect_whole_page(request: HttpRequest, response: HttpResponseRedirect) -> HttpResponseBase:
    """Return a redirect that htmx follows as a full page instead of swapping in a part."""
    if "HX-Request" not in request.headers:
        return response
    return HttpResponse(headers={"HX-Redirect": response.url})
