"""Actions of the thread list: change status or assignee, tag, export."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access, exports, reviewers
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.urls import reverse_page
from mastra_memory.db.users import get_user_id
from mastra_memory.models import ExportJob, Review, Tag, Thread
from mastra_memory.review import reviews, tags

MAX_REVIEWED_THREADS = 1_000
"""A review action changes at most this many threads."""
MAX_TITLES_SHOWN = 20
MAX_EXPORTED_THREADS = 10_000


def _make_status_action(status: str, label: Any) -> Callable[..., Any]:
    @admin.action(description=_("Set status: %(status)s"), permissions=["review"])
    def act(model_admin: Any, request: HttpRequest, threads: QuerySet[Thread]) -> None:
        ids = _list_ids(request, threads)
        count = reviews.update_reviews(ids, by=request.user, status=status)
        _show_count(request, count)

    act.__name__ = f"status_{status}"
    act.short_description = _("Set status: %(status)s") % {"status": label}  # type: ignore[attr-defined]
    return act


def _list_ids(
    request: HttpRequest, threads: QuerySet[Thread], limit: int = MAX_REVIEWED_THREADS
) -> list[str]:
    ids = list(threads.order_by("-updated_at", "-pk").values_list("pk", flat=True)[: limit + 1])
    if len(ids) > limit:
        text = gettext("Only the newest %d of the selected conversations were processed.")
        messages.warning(request, text % limit)
    return ids[:limit]


def _show_count(request: HttpRequest, count: int, *, with_link: bool = False) -> None:
    text = ngettext("%d conversation was changed.", "%d conversations were changed.", count)
    if not with_link:
        messages.success(request, text % count)
        return
    address = reverse_page("mastra_memory_thread_next")
    link = format_html('<a href="{}">{}</a>', address, gettext("Open the first"))
    messages.success(request, format_html("{} {}", text % count, link))


class BulkActions:
    """Mixin with the actions of the thread list. Each action requires its own permission.

    The actions receive only threads that the user may see.
    """

    def get_actions(self, request: HttpRequest) -> Any:
        """Add one action for each status, and move deletion to the end."""
        actions = super().get_actions(request)  # type: ignore[misc]
        if access.has_permission(request.user, "review_thread"):
            for status, label in Review.Status.choices:
                act = _make_status_action(status, label)
                name = act.__name__
                actions[name] = (act, name, act.short_description)  # type: ignore[attr-defined]
        if "delete_selected" in actions:
            actions["delete_selected"] = actions.pop("delete_selected")
        return actions

    actions: Any = ["assign_to_me", "assign", "tag", "export"]

    def has_review_permission(self, request: HttpRequest) -> bool:
        """Return True if the user may review threads."""
        return access.has_permission(request.user, "review_thread")

    def has_export_permission(self, request: HttpRequest) -> bool:
        """Return True if the user may export threads."""
        return access.has_permission(request.user, "export_thread")

    @admin.action(description=_("Assign to me"), permissions=["review"])
    def assign_to_me(self, request: HttpRequest, threads: QuerySet[Thread]) -> None:
        """Assign the selected threads to the user."""
        ids = _list_ids(request, threads)
        count = reviews.update_reviews(ids, by=request.user, assignee_id=request.user.pk)
        _show_count(request, count, with_link=True)

    @admin.action(description=_("Assign to…"), permissions=["review"])
    def assign(self, request: HttpRequest, threads: QuerySet[Thread]) -> HttpResponseBase | None:
        """Ask for an assignee, then assign the selected threads."""
        if "chosen" not in request.POST:
            own_id = get_user_id(request.user)
            own_first = sorted(reviewers.list_choices(), key=lambda person: person[0] != own_id)
            choices = [*own_first, ("", gettext("unassigned"))]
            return self._ask(
                request,
                threads,
                "assign",
                gettext("Assign to…"),
                gettext("Assignee"),
                choices=choices,
            )
        ids = _list_ids(request, threads)
        assignee = reviewers.find_reviewer_id(request.POST["chosen"])
        _show_count(request, reviews.update_reviews(ids, by=request.user, assignee_id=assignee))
        return None

    @admin.action(description=_("Add a tag…"), permissions=["review"])
    def tag(self, request: HttpRequest, threads: QuerySet[Thread]) -> HttpResponseBase | None:
        """Ask for a tag, then add it to the selected threads."""
        if "chosen" not in request.POST:
            known = list(Tag.objects.values_list("name", flat=True)[:200])
            return self._ask(
                request, threads, "tag", gettext("Add a tag…"), gettext("Tag"), known=known
            )
        _show_count(
            request,
            tags.add_tag(_list_ids(request, threads), request.POST["chosen"], by=request.user),
        )
        return None

    @admin.action(description=_("Export…"), permissions=["export"])
    def export(self, request: HttpRequest, threads: QuerySet[Thread]) -> HttpResponseBase | None:
        """Ask for a format, then start the export."""
        if "chosen" not in request.POST:
            choices = ExportJob.Format.choices
            return self._ask(
                request, threads, "export", gettext("Export…"), gettext("Format"), choices=choices
            )
        ids = _list_ids(request, threads, MAX_EXPORTED_THREADS)
        return exports.start_export(request, ids, request.POST["chosen"])

    def _ask(
        self,
        request: HttpRequest,
        threads: QuerySet[Thread],
        action: str,
        title: str,
        label: str,
        **more: Any,
    ) -> HttpResponse:
        """Return a page that lists the selected threads and asks for a value."""
        mask = access.get_mask(request.user)
        shown = [
            escape_bidi_overrides(mask(str(thread)))[:120] for thread in threads[:MAX_TITLES_SHOWN]
        ]
        count = threads.order_by().values("pk")[: MAX_EXPORTED_THREADS + 1].count()
        context = {
            **self.admin_site.each_context(request),  # type: ignore[attr-defined]
            "opts": self.opts,  # type: ignore[attr-defined]
            "is_nav_sidebar_enabled": False,
            "title": title,
            "label": label,
            "action": action,
            "count": count,
            "shown": shown,
            "unshown": count - len(shown),
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
            **more,
        }
        return TemplateResponse(request, "admin/mastra_memory/thread/bulk.html", context)
