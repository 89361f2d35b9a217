"""The key of an observational record: a thread, or a resource."""

from dataclasses import dataclass
from typing import Any, Literal, cast

from mastra_memory.models import ObservationalRecord, Scope

ScopeName = Literal["thread", "resource"]


@dataclass(frozen=True, slots=True)
class RecordKey:
    """What a record is about. All its generations share the key."""

    scope: ScopeName
    thread_id: str | None
    """The thread in thread scope; None in resource scope."""
    resource_id: str

    @staticmethod
    def about_thread(thread_id: str, resource_id: str) -> "RecordKey":
        """Return the key of a thread."""
        return RecordKey("thread", thread_id, resource_id)

    @staticmethod
    def about_resource(resource_id: str) -> "RecordKey":
        """Return the key of a resource."""
        return RecordKey("resource", None, resource_id)

    @staticmethod
    def build(scope: str, *, thread_id: str | None, resource_id: str | None) -> "RecordKey | None":
        """Return the key in this scope, or None if the id that it needs is missing.

        In thread scope `resource_id` falls back to the id of the thread, as in Mastra.
        """
        if scope == Scope.THREAD:
            return (
                RecordKey.about_thread(thread_id, resource_id or thread_id) if thread_id else None
            )
        return RecordKey.about_resource(resource_id) if resource_id else None

    @staticmethod
    def of_record(record: ObservationalRecord) -> "RecordKey":
        """Return the key of a record."""
        scope = cast(ScopeName, str(record.scope))
        return RecordKey(scope, record.thread_id, record.resource_id)

    @property
    def subject_id(self) -> str:
        """The id of the thread or of the resource."""
        return self.thread_id if self.thread_id is not None else self.resource_id

    def condition(self, alias: str) -> tuple[str, list[Any]]:
        """Return the SQL condition for rows of `alias` that belong to the thread or resource."""
        if self.thread_id is not None:
            return f"{alias}.thread_id = %s", [self.thread_id]
        return f"{alias}.resource_id = %s", [self.resource_id]

    def record_condition(self, alias: str) -> tuple[str, list[Any]]:
        """Return the SQL condition for generations of this key.

        A thread may have been transferred since the key was built, so its resource is not compared.
        """
        if self.thread_id is not None:
            return f"{alias}.thread_id = %s", [self.thread_id]
        return f"{alias}.thread_id IS NULL AND {alias}.resource_id = %s", [self.resource_id]
