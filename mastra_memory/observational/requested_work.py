"""Do what people asked a worker for.

A request is stored on the record until it is done, so it survives a broker that is down and a
worker that is killed.
"""

import logging
from dataclasses import replace

from mastra_memory.exceptions import (
    ClaimLost,
    InvalidInput,
    ProviderRefused,
    ProviderUnavailable,
)
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import claims, cycle, generations, operations
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.work import Work

logger = logging.getLogger(__name__)

_OPERATIONS = {"observe": operations.observe, "reflect": operations.reflect}


def do_requests(record_id: str) -> None:
    """Do what people asked for on the live generation of a record, if it still exists.

    A failed operation is not retried: the timeline of the record shows the error, and the person
    can ask again. If another worker has the claim, the request is kept.
    """
    records = ObservationalRecord.objects.only("scope", "thread_id", "resource_id")
    given = records.filter(pk=record_id).first()
    record = generations.find_live_state(RecordKey.of_record(given)) if given else None
    if record is None or not record.requests:
        return
    job = cycle.find_work(record)
    for operation, user_name in record.requests.items():
        if job is None or _run(replace(job, user_name=user_name), operation):
            claims.end_request(RecordKey.of_record(record), operation)


def _run(job: Work, operation: str) -> bool:
    """Run an operation. Return False if another worker is at work."""
    try:
        _OPERATIONS[operation](job)
    except ClaimLost:
        return False
    except (ProviderUnavailable, ProviderRefused, InvalidInput) as error:
        logger.warning("Requested work failed (key=%s): %s", job.key, type(error).__name__)
    except Exception:
        # An unexpected failure must not be repeated every few seconds.
        claims.end_request(job.key, operation)
        raise
    return True
