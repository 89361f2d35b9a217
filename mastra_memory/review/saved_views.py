"""Saved views: named filters, for one person or for all."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from mastra_memory.db import json_text, routing
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import DefaultView, SavedView


def list_views(user: Any) -> QuerySet[SavedView]:
    """One's own and the shared ones."""
    return SavedView.objects.filter(Q(owner=user) | Q(shared=True)).select_related("owner")


@routing.atomic
def save_view(
    user: Any, name: str, query: str, *, shared: bool = False, default: bool = False
) -> SavedView:
    """Keep a filter under a name; the name again replaces it. Raises `InvalidInput` without one."""
    name = " ".join(json_text.clean_text(name).split())[:100]
    if not name:
        raise InvalidInput(_("A view needs a name."))
    view, _made = SavedView.objects.update_or_create(
        owner=user, name=name, defaults={"query": query, "shared": shared}
    )
    if default:
        set_default_view(user, view.pk)
    return view


def set_default_view(user: Any, view_id: int | None) -> None:
    """Open the list with this view from now on; None: with everything."""
    view = list_views(user).filter(pk=view_id).first() if view_id else None
    if view is None:
        DefaultView.objects.filter(user=user).delete()
    else:
        DefaultView.objects.update_or_create(user=user, defaults={"view": view})


def delete_view(user: Any, view_id: int) -> bool:
    """Delete one's own view; False when it is none of one's own."""
    gone, _kinds = SavedView.objects.filter(pk=view_id, owner=user).delete()
    return bool(gone)


def find_default_view(user: Any) -> SavedView | None:
    """The view with which the list opens, None for everything; one no longer shared is none."""
    found = DefaultView.objects.filter(user=user).values_list("view_id", flat=True).first()
    return list_views(user).filter(pk=found).first() if found else None
