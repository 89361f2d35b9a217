"""Find resource ids of a source that are the ids of users of this site."""

from collections.abc import Callable, Iterable, Sequence

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError

from mastra_memory.importers.records import ImportedThread, ImportedWorkingMemory
from mastra_memory.importers.validation import ImportRow


class UserIdWarning:
    """Warn once about each resource that is the id of a user, who would see the imported data."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """Create the check; `warn` is called with the resource id."""
        self._warn = warn
        self._warned: set[str] = set()

    def check_rows(self, rows: Sequence[ImportRow]) -> None:
        """Check the resources of a batch before it is stored."""
        types = (ImportedThread, ImportedWorkingMemory)
        resource_ids = {row.item.resource_id for row in rows if isinstance(row.item, types)}
        for resource_id in sorted(find_user_ids(resource_ids - self._warned)):
            self._warned.add(resource_id)
            self._warn(resource_id)


def find_user_ids(resource_ids: Iterable[str]) -> set[str]:
    """Return the resource ids that are the primary key of a user."""
    users = get_user_model()
    keys = []
    for resource_id in resource_ids:
        try:
            key = users._meta.pk.clean(resource_id, None)
        except (ValidationError, ValueError):
            continue
        if str(key) == resource_id:  # "007" is not the id of user 7
            keys.append(key)
    existing = users._default_manager.filter(pk__in=keys) if keys else users._default_manager.none()
    return {str(pk) for pk in existing.values_list("pk", flat=True)}
