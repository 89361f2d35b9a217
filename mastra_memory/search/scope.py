"""Where a search may look: a thread, a resource, a queryset of threads, or everywhere."""

from dataclasses import dataclass

from django.db.models import QuerySet

from mastra_memory.db import json_text, sql
from mastra_memory.models import Thread

VISIBLE = "NOT (m.signal = 'system-reminder' OR (m.role = 'signal' AND m.signal = 'reactive'))"
"""System reminders are for the model; no search shows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """All that is given must hold; nothing given means everything."""

    resource_id: str | None = None
    thread_id: str | None = None
    within: QuerySet[Thread] | None = None
    """Only threads of this queryset: what a member of staff may see."""

    def condition(self, row: str, *, by_index: bool = True) -> sql.Where:
        """The scope as SQL on a row that has `thread_id` and `resource_id`.

        Without `by_index` it is said so that no B-tree serves it: each row is looked at in turn.
        """
        return self._condition(row, "thread_id", by_index)

    def thread_condition(self, row: str) -> sql.Where:
        """The scope as SQL on a row of the thread table."""
        return self._condition(row, "id", True)

    @property
    def is_named(self) -> bool:
        """Whether it is one thread or one resource."""
        return self.resource_id is not None or self.thread_id is not None

    def _condition(self, row: str, thread_column: str, by_index: bool) -> sql.Where:
        where = sql.Where()
        plain = "" if by_index else " || ''"
        if self.thread_id is not None:
            where.add(f"{row}.{thread_column}{plain} = %s", json_text.clean_text(self.thread_id))
        if self.resource_id is not None:
            where.add(f"{row}.resource_id{plain} = %s", json_text.clean_text(self.resource_id))
        if self.within is not None:
            statement, params = self.within.order_by().values("pk").query.sql_with_params()
            allowed = f"({statement})" if by_index else f"ANY (ARRAY({statement}))"
            sign = "IN" if by_index else "="
            where.add(f"{row}.{thread_column} {sign} {allowed}", *params)
        return where
