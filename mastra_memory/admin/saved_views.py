"""Saved views of the thread list: save, delete and choose a default."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin.params import read_integer
from mastra_memory.admin.thread_filters import FilterForm
from mastra_memory.admin.urls import reverse_page
from mastra_memory.db.users import get_user_id, get_usernames
from mastra_memory.exceptions import InvalidInput
from mastra_memory.review import saved_views

QUICK_VIEWS = [
    (_("Mine"), "assignee=me"),
    (_("New and unassigned"), "assignee=none&status=new"),
    (_("Flagged"), "status=flagged"),
]
"""Views that every user has."""
SAVED_PARAMETERS = {*FilterForm.base_fields, "q", "o"}


def list_url(**query: str) -> str:
    """Return the URL of the thread list."""
    path = reverse_page("mastra_memory_thread_changelist")
    return f"{path}?{urlencode(query)}" if query else path


def redirect_to_default_view(request: HttpRequest) -> HttpResponseRedirect | None:
    """Return a redirect to the default view of the user if the request has no query string."""
    if request.method != "GET" or request.GET:
        return None
    view = saved_views.find_default_view(request.user)
    if view is None or not view.query:
        return None
    return HttpResponseRedirect(f"{list_url()}?{view.query}")


def get_view_context(request: HttpRequest) -> dict[str, Any]:
    """Return the template context: all views, and which of them is open."""
    query = _normalize_query(request.GET)
    default = saved_views.find_default_view(request.user)
    views, own_id = list(saved_views.list_views(request.user)), get_user_id(request.user)
    names = get_usernames(view.owner_id for view in views if view.owner_id != own_id)
    return {
        "views": [
            {
                "view": view,
                "is_open": view.query == query,
                "is_own": view.owner_id == own_id,
                "owner_name": names.get(view.owner_id, "–"),
            }
            for view in views
        ],
        "quick_views": [(label, wanted, wanted == query) for label, wanted in QUICK_VIEWS],
        "default_view": default,
        "filter_query": query,
        "is_everything": not query,
    }


def _normalize_query(given: QueryDict) -> str:
    """Return the parameters that a view stores, sorted, as a query string."""
    kept = sorted(
        (name, value) for name, value in given.items() if name in SAVED_PARAMETERS and value
    )
    return urlencode(kept)


def change_views(request: HttpRequest) -> HttpResponseRedirect:
    """Handle the form: save the current filters as a view, delete a view, or set the default."""
    if request.method != "POST":
        raise Http404
    given, user = request.POST, request.user
    query = _normalize_query(QueryDict(given.get("query", "")))
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
        saved_views.set_default_view(user, chosen)
    return HttpResponseRedirect(f"{list_url()}?{query or 'all=1'}")
