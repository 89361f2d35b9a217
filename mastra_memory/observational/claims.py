"""Claim work on a record with leases, and request work that workers find in the rows.

A record has two leases: one for observing and buffering, one for reflecting. Each has a fencing
token. It moves with the live record to a new generation, so a claim survives a reflection or a
correction that happens meanwhile.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mastra_memory.db import leases, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import ClaimLost
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import claim_queries
from mastra_memory.observational.keys import RecordKey

ObservingOperation = Literal["observing", "buffering"]
ReflectingOperation = Literal["reflecting", "buffering"]
Operation = Literal["observe", "reflect"]
"""What a person can ask a worker for."""
Lease = Literal["lease", "reflection"]
"""The prefix of the columns of a lease."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write the result of one operation to a record."""

    record_id: str
    """The record that was live when the claim was made."""
    key: RecordKey
    token: uuid.UUID
    operation: str
    lease: Lease


def claim_observing(record: ObservationalRecord, operation: ObservingOperation) -> Claim | None:
    """Claim observing or buffering, or return None while another worker has the claim."""
    return _claim(record, operation, "lease")


def claim_reflecting(record: ObservationalRecord, operation: ReflectingOperation) -> Claim | None:
    """Claim reflecting, or return None while another worker has the claim."""
    return _claim(record, operation, "reflection")


@retry_conflicts
def _claim(record: ObservationalRecord, operation: str, lease: Lease) -> Claim | None:
    key, token = RecordKey.of_record(record), uuid.uuid4()
    condition, params = key.record_condition("r")
    row = _change_live(
        claim_queries.claim(lease, condition), [token, operation, leases.LEASE_SECONDS, *params]
    )
    return None if row is None else Claim(row[0], key, token, operation, lease)


def _change_live(statement: str, params: sql.SqlParams) -> sql.SqlRow | None:
    """Run a statement that changes the live record, and return its row.

    It is run twice if it changes nothing. The first time, it may have waited for a transaction that
    opened a generation: it does not see that one, and the row it waited for is not live any more.
    """
    return sql.fetch_one(statement, params) or sql.fetch_one(statement, params)


@retry_conflicts
def renew(claim: Claim) -> bool:
    """Extend the lease. Return False if the claim is lost. Use it with `leases.keep_renewing`."""
    condition, params = claim.key.record_condition("r")
    statement = claim_queries.renew(claim.lease, condition)
    return _change_live(statement, [leases.LEASE_SECONDS, *params, claim.token]) is not None


@retry_conflicts
def release(claim: Claim) -> bool:
    """Release the lease. Return False if the claim was lost before."""
    condition, params = claim.key.record_condition("r")
    statement = claim_queries.release(claim.lease, condition)
    return _change_live(statement, [*params, claim.token]) is not None


def check_claim(claim: Claim, record: ObservationalRecord) -> None:
    """Raise `ClaimLost` if the lease of a locked live record has another token."""
    if getattr(record, f"{claim.lease}_token") != claim.token:
        raise ClaimLost


@retry_conflicts
def request_work(key: RecordKey, agent_id: str | None) -> str | None:
    """Request a cycle of work on the live record; return its id, or None if there is no record.

    While the provider is unavailable, the time of the next attempt is kept.
    """
    condition, params = key.record_condition("r")
    row = _change_live(claim_queries.request_work(condition), [agent_id, *params])
    return row[0] if row else None


def request_operation(
    key: RecordKey, operation: Operation, agent_id: str | None, *, user_name: str
) -> str | None:
    """Request what a person asked for; return the id of the live record, or None without one."""
    condition, params = key.record_condition("r")
    statement = claim_queries.request_operation(condition)
    row = _change_live(statement, [agent_id, operation, user_name, *params])
    return row[0] if row else None


def end_request(key: RecordKey, operation: str) -> None:
    """Remove the request for an operation, because it was done or has failed."""
    condition, params = key.record_condition("r")
    _change_live(claim_queries.end_request(condition), [operation, *params])


@retry_conflicts
def finish_work(key: RecordKey, due_at: datetime | None) -> bool:
    """Mark requested work as done. Return False if there is another request.

    Args:
        key: The thread or resource.
        due_at: `due_at` of the record when the cycle began.
    """
    condition, params = key.record_condition("r")
    return _change_live(claim_queries.finish_work(condition), [*params, due_at]) is not None


@retry_conflicts
def fail_work(key: RecordKey, error: str, *, retry_after: float | None) -> int:
    """Record a failure and return the number of failed attempts.

    Args:
        key: The thread or resource.
        error: What to show in the admin.
        retry_after: Seconds until the next attempt; None to wait for new messages.
    """
    condition, params = key.record_condition("r")
    row = _change_live(claim_queries.fail_work(condition), [error[:2000], retry_after, *params])
    return row[0] if row else 0


def list_due_records(limit: int = 100) -> list[str]:
    """Return the ids of live records whose work is due and that no worker has claimed."""
    return [record_id for (record_id,) in sql.fetch_all(claim_queries.LIST_DUE, [limit])]


def list_abandoned_records(limit: int = 100) -> list[str]:
    """Return the ids of live records with running events whose workers were killed."""
    return [record_id for (record_id,) in sql.fetch_all(claim_queries.LIST_ABANDONED, [limit])]
