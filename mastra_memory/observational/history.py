"""Read the generations of a record page by page."""

from datetime import datetime

from mastra_memory.db import sql
from mastra_memory.observational import generations
from mastra_memory.types import GenerationPage


def list_page(
    scope: str,
    *,
    thread_id: str | None,
    resource_id: str | None,
    page: int = 0,
    per_page: int = 10,
    start: datetime | None = None,
    end: datetime | None = None,
) -> GenerationPage:
    """Return one page of the generations, newest first. `start` and `end` are inclusive.

    Raises:
        InvalidInput: `page` or `per_page` is not a whole number of at least 0.
    """
    limit, offset = sql.get_limit_offset(page, per_page)
    records = generations.list_records(scope, thread_id=thread_id, resource_id=resource_id)
    if start is not None:
        records = records.filter(created_at__gte=start)
    if end is not None:
        records = records.filter(created_at__lte=end)
    total = records.count()
    newest = records.order_by("-generation_count")
    found = list(newest[offset : offset + (limit or 0)]) if offset < total else []
    return GenerationPage(
        generations=found,
        total=total,
        page=page,
        per_page=per_page,
        has_more=offset + len(found) < total,
    )
