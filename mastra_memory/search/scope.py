"""Where a search may look: a thread, a resource, a queryset of threads, or everywhere."""

from dataclasses import dataclass

from django.db.models import QuerySet

from mastra_memory import jsontext, sql
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

    def condition(self, row: str) -> sql.Where:
        """The scope as SQL on a row that has `thread_id` and `resource_id`."""
        return self._condition(row, "thread_id")

    def thread_condition(self, row: str) -> sql.Where:
        """The scope as SQL on a row of the thread table."""
        return self._condition(row, "id")

    def _condition(self, row: str, thread_column: str) -> sql.Where:
        where = sql.Where()
        if self.thread_id is not None:
            where.add(f"{row}.{thread_column} = %s", jsontext.clean_text(self.thread_id))
        if self.resource_id is not None:
            where.add(f"{row}.resource_id = %s", jsontext.clean_text(self.resource_id))
        if self.within is not None:
            statement, params = self.within.order_by().values("pk").query.sql_with_params()
            where.add(f"{row}.{thread_column} IN ({statement})", *params)
        return where
