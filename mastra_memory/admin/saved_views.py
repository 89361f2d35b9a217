"""Saved views above the thread list: open one, keep one, make one's own default."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin.params import read_integer
from mastra_memory.admin.thread_filters import FilterForm
from mastra_memory.exceptions import InvalidInput
from mastra_memory.review import saved_views

QUICK = [
    (_("Mine"), "assignee=me"),
    (_("New and unassigned"), "assignee=none&status=new"),
    (_("Flagged"), "status=flagged"),
]
"""Views that everybody has."""
KEPT = {*FilterForm.base_fields, "q", "o"}


def list_address(**query: str) -> str:
    """The thread list."""
    path = reverse("admin:mastra_memory_thread_changelist")
    return f"{path}?{urlencode(query)}" if query else path


def default_redirect(request: HttpRequest) -> HttpResponseRedirect | None:
    """To the person's default view, when they come without asking for anything."""
    if request.method != "GET" or request.GET:
        return None
    view = saved_views.find_default(request.user)
    if view is None or not view.query:
        return None
    return HttpResponseRedirect(f"{list_address()}?{view.query}")


def context(request: HttpRequest) -> dict[str, Any]:
    """The views to choose from, and the one that is open."""
    query = _filters(request.GET)
    default = saved_views.find_default(request.user)
    return {
        "views": [
            {"view": view, "is_open": view.query == query, "is_own": view.owner == request.user}
            for view in saved_views.list_views(request.user)
        ],
        "quick_views": [(label, wanted, wanted == query) for label, wanted in QUICK],
        "default_view": default,
        "filter_query": query,
        "is_everything": not query,
    }


def _filters(given: QueryDict) -> str:
    """The part of an address that a view keeps, in a settled order."""
    kept = sorted((name, value) for name, value in given.items() if name in KEPT and value)
    return urlencode(kept)


def change(request: HttpRequest) -> HttpResponseRedirect:
    """Save the filters of the address as a view; or delete, or choose, one."""
    if request.method != "POST":
        raise Http404
    given, user = request.POST, request.user
    query = _filters(QueryDict(given.get("query", "")))
    chosen = read_integer(given.get("view"))
    if "save" in given:
        try:
            wanted = {"shared": "shared" in given, "default": "default" in given}
            saved_views.save_view(user, given.get("name", ""), query, **wanted)
            messages.success(request, gettext("The view was saved."))
        except InvalidInput as fault:
            messages.error(request, str(fault))
    elif "delete" in given and chosen is not None and saved_views.delete_view(user, chosen):
        messages.success(request, gettext("The view was deleted."))
    elif "make_default" in given:
        saved_views.set_default(user, chosen)
    return HttpResponseRedirect(f"{list_address()}?{query or 'all=1'}")
