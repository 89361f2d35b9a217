"""Where to search: a thread, a resource, a queryset of threads, or everywhere."""

from dataclasses import dataclass

from django.db.models import QuerySet

from mastra_memory.content.signal_types import IS_REMINDER_SQL
from mastra_memory.db import json_text, sql
from mastra_memory.models import Thread

VISIBLE = f"NOT {IS_REMINDER_SQL}"
"""SQL condition on a message `m`. It excludes system reminders, which are for models only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """The messages to search. Fields that are None do not limit the search."""

    resource_id: str | None = None
    thread_id: str | None = None
    within: QuerySet[Thread] | None = None
    """Only messages of these threads, such as those that a member of staff may see."""

    def condition(self, row: str, *, use_index: bool = True) -> sql.Where:
        """Return the scope as SQL on a row that has `thread_id` and `resource_id`.

        Without `use_index`, the condition is written so that PostgreSQL cannot use a B-tree index
        for it. Otherwise the planner may choose the B-tree index instead of the HNSW index, and
        sort all vectors.
        """
        return self._build_condition(row, "thread_id", use_index)

    def thread_condition(self, row: str) -> sql.Where:
        """Return the scope as SQL on a row of the thread table."""
        return self._build_condition(row, "id", True)

    @property
    def is_named(self) -> bool:
        """Whether the scope names one thread or one resource."""
        return self.resource_id is not None or self.thread_id is not None

    def _build_condition(self, row: str, thread_column: str, use_index: bool) -> sql.Where:
        where = sql.Where()
        # An expression such as `thread_id || ''` does not match an index on `thread_id`.
        suffix = "" if use_index else " || ''"
        if self.thread_id is not None:
            where.add(f"{row}.{thread_column}{suffix} = %s", json_text.clean_text(self.thread_id))
        if self.resource_id is not None:
            where.add(f"{row}.resource_id{suffix} = %s", json_text.clean_text(self.resource_id))
        if self.within is not None:
            subquery, params = self.within.order_by().values("pk").query.sql_with_params()
            allowed = f"IN ({subquery})" if use_index else f"= ANY (ARRAY({subquery}))"
            where.add(f"{row}.{thread_column} {allowed}", *params)
        return where
