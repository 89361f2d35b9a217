"""Permissions, visibility and masking in the admin."""

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
    """Return True if the user has a permission of this app, such as `review_thread`."""
    return bool(user.has_perm(f"{APP_LABEL}.{right}"))


def visible_threads(request: HttpRequest) -> QuerySet[Thread]:
    """Return the threads that the user may see.

    These are all threads, unless the setting `ADMIN_THREADS` narrows them.
    """
    threads = Thread.objects.all()
    if not has_permission(request.user, "view_thread"):
        return threads.none()
    hook = conf.app_settings().ADMIN_THREADS
    return import_string(hook)(request, threads) if hook else threads


def has_thread_limit() -> bool:
    """Return True if the setting `ADMIN_THREADS` may hide threads from some users."""
    return bool(conf.app_settings().ADMIN_THREADS)


def all_threads() -> QuerySet[Thread]:
    """Return all threads, to compare their number with that of the visible ones."""
    return Thread.objects.all()


def filter_by_visible_threads(request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the rows of visible threads, and those of the resources of visible threads."""
    if not has_thread_limit():
        return rows if has_permission(request.user, "view_thread") else rows.none()
    threads = visible_threads(request).order_by()
    of_resource = Q(thread__isnull=True, resource_id__in=threads.values("resource_id"))
    return rows.filter(Q(thread__in=threads.values("pk")) | of_resource)


def get_mask(user: Any) -> redaction.Mask:
    """Return the function that masks personal data in texts for this user."""
    return (
        redaction.keep_text if has_permission(user, "view_personal_data") else redaction.get_mask()
    )


def refuse_masked_search(request: HttpRequest, query: str) -> bool:
    """Show a warning and return True if the query contains data that is masked for the user.

    Otherwise users could guess masked values and confirm them with a search.
    """
    if get_mask(request.user)(query) == query:
        return False
    messages.warning(request, _("You cannot search for personal data that is masked for you."))
    return True
