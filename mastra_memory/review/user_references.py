"""What becomes of our rows when a user is deleted.

No foreign key connects them, because users may be stored in another database.
"""

from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models.signals import post_delete

from mastra_memory.db import routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.db.users import get_user_id
from mastra_memory.models import (
    DefaultView,
    ExportJob,
    Review,
    ReviewNote,
    SavedView,
    Score,
    ThreadChange,
    Visit,
    WorkingMemoryRevision,
)

_DELETED = (
    (DefaultView, "user_id"),
    (SavedView, "owner_id"),
    (Visit, "user_id"),
    (Score, "author_id"),
    (ExportJob, "owner_id"),
)
_CLEARED = (
    (Review, "assignee_id"),
    (Review, "changed_by_id"),
    (ReviewNote, "author_id"),
    (ThreadChange, "author_id"),
    (WorkingMemoryRevision, "author_id"),
)


@retry_conflicts
@routing.atomic
def remove_references(user_id: str) -> None:
    """Delete what belongs to the user alone, and clear the user in all other rows.

    Views, visits, scores and exports of the user are deleted. Notes, changes and reviews remain,
    without author or assignee.
    """
    for model, field in _DELETED:
        model._default_manager.filter(**{field: user_id}).delete()
    for cleared_model, field in _CLEARED:
        rows = cleared_model._default_manager.filter(**{field: user_id})
        rows.update(**{field: None})


def connect() -> None:
    """Call `remove_references` whenever a user is deleted.

    Django sends the signal for the class of the instance, which may be a proxy of the user model.
    """
    users = get_user_model()
    for model in apps.get_models():
        if issubclass(model, users):
            post_delete.connect(
                _handle_deletion, sender=model, dispatch_uid=f"mastra_memory.{model._meta.label}"
            )


def _handle_deletion(instance: Any, using: str, **_: Any) -> None:
    user_id = get_user_id(instance)
    if using == routing.get_alias():
        remove_references(user_id)
    else:  # The deletion may still be rolled back in its own database.
        routing.on_commit(partial(remove_references, user_id), using=using)
