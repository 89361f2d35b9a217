"""Activate the chunks of conversations in which nothing happens any more."""

from collections.abc import Sequence

from mastra_memory.db import sql
from mastra_memory.exceptions import ClaimLost
from mastra_memory.models import ObservationalRecord, ObservationChunk
from mastra_memory.observational import cycle, idle, queries
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.work import Work
from mastra_memory.types import StoredMessage

MAX_RECORDS = 1_000
"""How many records one run looks at, those that were changed longest ago first."""


def activate_idle() -> int:
    """Activate chunks after the time in the option `activate_after_idle`.

    Returns:
        The number of records whose chunks were activated.
    """
    waiting = ObservationalRecord.objects.live().filter(
        pk__in=ObservationChunk.objects.buffered().values("record")
    )
    count = 0
    for record in waiting.order_by("updated_at")[:MAX_RECORDS]:
        job = cycle.find_work(record)
        if job is not None and job.options.activate_after_idle is not None:
            count += _activate_if_idle(job, record)
    return count


def _activate_if_idle(job: Work, record: ObservationalRecord) -> bool:
    newest = _list_newest_answers(job.key)
    milliseconds = idle.get_idle_milliseconds(job.get_settings(record), _get_model(newest))
    last_activity = idle.get_last_activity(newest)
    if not idle.is_idle(last_activity, milliseconds):
        return False
    try:
        return cycle.activate_all(job, triggered_by="ttl", last_activity=last_activity) > 0
    except ClaimLost:
        return False  # The record was deleted or changed again and again. The next run looks again.


def _list_newest_answers(key: RecordKey) -> list[StoredMessage]:
    """Return the newest message of the assistant, if there is one."""
    rows = sql.fetch_all(queries.newest_answer(key), [key.subject_id])
    return [StoredMessage(*row) for row in rows]


def _get_model(messages: Sequence[StoredMessage]) -> str:
    """Return the model of the newest answer, `provider/model`, or an empty text."""
    for message in messages:
        for part in reversed(message.content.get("parts") or []):
            model = part.get("model") if part.get("type") == "step-start" else None
            if isinstance(model, str):
                return model
    return ""
