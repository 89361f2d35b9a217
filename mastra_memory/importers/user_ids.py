"""Notice resource ids of a source that are ids of users here."""

from collections.abc import Callable, Iterable, Sequence

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError

from mastra_memory.importers.records import ImportedThread, ImportedWorkingMemory
from mastra_memory.importers.validation import ImportRow


class UserIdWarning:
    """Warns of each resource that is about to become a user's, once."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """`warn` gets the resource id."""
        self._warn = warn
        self._warned: set[str] = set()

    def check_rows(self, rows: Sequence[ImportRow]) -> None:
        """Check the resources of a batch, before it is stored."""
        kinds = (ImportedThread, ImportedWorkingMemory)
        found = {row.item.resource_id for row in rows if isinstance(row.item, kinds)}
        for resource_id in sorted(find_user_ids(found - self._warned)):
            self._warned.add(resource_id)
            self._warn(resource_id)


def find_user_ids(resource_ids: Iterable[str]) -> set[str]:
    """Those that are the primary key of a user."""
    users = get_user_model()
    keys = []
    for resource_id in resource_ids:
        try:
            key = users._meta.pk.clean(resource_id, None)
        except (ValidationError, ValueError):
            continue
        if str(key) == resource_id:  # not `007`
            keys.append(key)
    found = users._default_manager.filter(pk__in=keys) if keys else users._default_manager.none()
    return {str(key) for key in found.values_list("pk", flat=True)}
