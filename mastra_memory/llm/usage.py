"""Record the tokens and cost of calls to models."""

from decimal import Decimal

from mastra_memory.db import json_text, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import ModelUsage


@retry_conflicts
def record_usage(
    purpose: ModelUsage.Purpose,
    model: str,
    *,
    input_tokens: int,
    output_tokens: int = 0,
    cost: Decimal | None = None,
    thread_id: str | None = None,
    resource_id: str | None = None,
) -> None:
    """Record one call. If the thread has been deleted, its id is not recorded."""
    owner = None if thread_id else resource_id and json_text.clean_text(resource_id)
    # The lock keeps the thread from being deleted or transferred between the read and the insert.
    sql.execute(
        """WITH t AS (SELECT id, resource_id FROM mastra_memory_thread WHERE id = %s FOR KEY SHARE)
        INSERT INTO mastra_memory_modelusage
            (thread_id, resource_id, purpose, model, input_tokens, output_tokens, cost)
        SELECT t.id, coalesce(t.resource_id, given.resource_id), %s, %s, %s, %s, %s
        FROM (SELECT %s::text AS resource_id) AS given LEFT JOIN t ON TRUE""",
        [thread_id, purpose, model, input_tokens, output_tokens, cost, owner],
    )
