"""Do the work that a person asked a worker for."""

import logging
from collections.abc import Callable
from dataclasses import replace

from mastra_memory.exceptions import ClaimLost, ProviderRefused, ProviderUnavailable
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import cycle, generations, operations
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.work import Work

logger = logging.getLogger(__name__)


def observe(record_id: str, user_name: str) -> bool:
    """Observe all messages of a record. Return whether it was done; see `_run`."""
    return _run(record_id, user_name, operations.observe)


def reflect(record_id: str, user_name: str) -> bool:
    """Condense the log of a record. Return whether it was done; see `_run`."""
    return _run(record_id, user_name, operations.reflect)


def _run(record_id: str, user_name: str, operation: Callable[[Work], object]) -> bool:
    """Run an operation on the live generation of a record, if it still exists.

    A failure is not repeated: the timeline of the record shows it to the person, who may ask again.
    """
    requested = ObservationalRecord.objects.filter(pk=record_id).first()
    record = generations.find_live(RecordKey.of_record(requested)) if requested else None
    job = cycle.find_work(record) if record else None
    if job is None:
        return False
    try:
        operation(replace(job, user_name=user_name))
    except ClaimLost:
        return False  # Another worker does the same.
    except (ProviderUnavailable, ProviderRefused) as error:
        logger.warning("Requested work failed (record=%s): %s", record_id, error)
        return False
    return True
