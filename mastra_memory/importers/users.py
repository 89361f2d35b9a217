"""Notice resource ids of a source that are ids of users here."""

from collections.abc import Callable, Iterable, Sequence

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError

from mastra_memory.importers.port import ImportedThread, ImportedWorkingMemory
from mastra_memory.importers.rows import Row


class UserWatch:
    """Warns of each resource that is about to become a user's, once."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """`warn` gets the resource id."""
        self._warn = warn
        self._warned: set[str] = set()

    def look_at(self, rows: Sequence[Row]) -> None:
        """Check the resources of a batch, before it is stored."""
        kinds = (ImportedThread, ImportedWorkingMemory)
        found = {row.item.resource_id for row in rows if isinstance(row.item, kinds)}
        for resource_id in sorted(keys_of_users(found - self._warned)):
            self._warned.add(resource_id)
            self._warn(resource_id)


def keys_of_users(resource_ids: Iterable[str]) -> set[str]:
    """Those that are the primary key of a user."""
    users = get_user_model()
    candidates = {}
    for resource_id in resource_ids:
        try:
            candidates[users._meta.pk.clean(resource_id, None)] = resource_id
        except (ValidationError, ValueError):
            continue
    if not candidates:
        return set()
    found = users._default_manager.filter(pk__in=list(candidates)).values_list("pk", flat=True)
    return {candidates[key] for key in found if str(key) == candidates[key]}
