"""Who may see and do what in the admin."""

from typing import Any

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from mastra_memory import conf
from mastra_memory.content import redaction
from mastra_memory.models import Thread

APP_LABEL = "mastra_memory"


def has_permission(user: Any, right: str) -> bool:
    """Whether the user has a right of this app: `review_thread`, `edit_transcript`, ..."""
    return bool(user.has_perm(f"{APP_LABEL}.{right}"))


def visible_threads(request: HttpRequest) -> QuerySet[Thread]:
    """The threads that this member of staff may see: all, unless the host narrows them."""
    threads = Thread.objects.all()
    if not has_permission(request.user, "view_thread"):
        return threads.none()
    hook = conf.app_settings().ADMIN_THREADS
    return import_string(hook)(request, threads) if hook else threads


def all_threads() -> QuerySet[Thread]:
    """Every thread, whoever asks: to tell whether somebody sees fewer."""
    return Thread.objects.all()


def filter_by_visible_threads(request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Rows that belong to a thread, or to the resource of one, narrowed to the visible ones."""
    if not conf.app_settings().ADMIN_THREADS:
        return rows if has_permission(request.user, "view_thread") else rows.none()
    threads = visible_threads(request).order_by()
    of_resource = Q(thread__isnull=True, resource_id__in=threads.values("resource_id"))
    return rows.filter(Q(thread__in=threads.values("pk")) | of_resource)


def get_mask(user: Any) -> redaction.Mask:
    """How texts are shown to this user."""
    return (
        redaction.keep_text if has_permission(user, "view_personal_data") else redaction.get_mask()
    )


def refuse_masked_search(request: HttpRequest, query: str) -> bool:
    """Return True, after a message to the user, if the query holds what is masked for them.

    Otherwise a search would tell whether a guess is right.
    """
    if get_mask(request.user)(query) == query:
        return False
    messages.warning(request, _("You cannot search for personal data that is masked for you."))
    return True
