"""Find resource ids of a source that are the ids of users of this site."""

from collections.abc import Callable, Sequence

from mastra_memory.db.users import find_user_ids
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
