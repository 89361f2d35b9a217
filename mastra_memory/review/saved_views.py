"""Saved views: named filters of the thread list, private or shared."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from mastra_memory.db import json_text, routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import DefaultView, SavedView

MAX_NAME_CHARACTERS = 100


def list_views(user: Any) -> QuerySet[SavedView]:
    """Return the user's own views and the shared ones."""
    return SavedView.objects.filter(Q(owner_id=user.pk) | Q(shared=True))


@retry_conflicts
@routing.atomic
def save_view(
    user: Any, name: str, query: str, *, shared: bool = False, default: bool = False
) -> SavedView:
    """Save a filter under a name. A view of the user with the same name is replaced.

    Args:
        user: The owner.
        name: A name; a long one is cut.
        query: The query string of the filtered list.
        shared: Show the view to all users.
        default: Open the list with this view.

    Raises:
        InvalidInput: The name is empty.
    """
    name = " ".join(json_text.clean_text(name).split())[:MAX_NAME_CHARACTERS]
    if not name:
        raise InvalidInput(_("A view needs a name."))
    view, _created = SavedView.objects.update_or_create(
        owner_id=user.pk, name=name, defaults={"query": query, "shared": shared}
    )
    if default:
        set_default_view(user, view.pk)
    return view


@retry_conflicts
@routing.atomic
def set_default_view(user: Any, view_id: int | None) -> None:
    """Set the view that the list opens with; None, or an unknown view, stands for no filter."""
    view = list_views(user).filter(pk=view_id).first() if view_id else None
    if view is None:
        DefaultView.objects.filter(user_id=user.pk).delete()
    else:
        DefaultView.objects.update_or_create(user_id=user.pk, defaults={"view": view})


@retry_conflicts
def delete_view(user: Any, view_id: int) -> bool:
    """Delete a view of the user; return False if the user has no such view."""
    deleted, _by_model = SavedView.objects.filter(pk=view_id, owner_id=user.pk).delete()
    return bool(deleted)


def find_default_view(user: Any) -> SavedView | None:
    """Return the view that the list opens with, or None.

    A view that its owner no longer shares is not returned to others.
    """
    view_id = DefaultView.objects.filter(user_id=user.pk).values_list("view_id", flat=True).first()
    return list_views(user).filter(pk=view_id).first() if view_id else None
