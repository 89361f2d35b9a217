"""SQL statements that claim work on observational records, and request it.

SQL and not the ORM, because each statement checks and changes a row atomically, with the clock of
the database.
"""

from mastra_memory.db import sql

_LIVE = "r.superseded_by_id IS NULL"
_RECORDS = "mastra_memory_observationalrecord"

NEXT_DUE_TIME = """CASE WHEN r.attempts > 0 AND r.due_at > clock_timestamp() THEN r.due_at
    ELSE greatest(clock_timestamp()::timestamptz(3), r.due_at + interval '1 ms') END"""
"""When requested work is due: now, or at the next attempt if the last one failed.

Each request changes `due_at`, so that a cycle that ends notices requests since its beginning.
"""


def claim(lease: str, condition: str) -> str:
    """Return SQL that takes a lease of the live record if it is free or has expired.

    Parameters: token, operation, seconds, those of the condition.
    """
    return f"""UPDATE {_RECORDS} r SET {lease}_token = %s, {lease}_operation = %s,
        {lease}_expires_at = clock_timestamp() + make_interval(secs => %s)
    WHERE {condition} AND {_LIVE}
        AND ({lease}_expires_at IS NULL OR {lease}_expires_at <= clock_timestamp())
    RETURNING r.id"""


def renew(lease: str, condition: str) -> str:
    """Return SQL that extends a lease. Parameters: seconds, those of the condition, token."""
    return f"""UPDATE {_RECORDS} r
    SET {lease}_expires_at = clock_timestamp() + make_interval(secs => %s)
    WHERE {condition} AND {_LIVE} AND {lease}_token = %s RETURNING r.id"""


def release(lease: str, condition: str) -> str:
    """Return SQL that ends a lease. Parameters: those of the condition, token."""
    return f"""UPDATE {_RECORDS} r
    SET {lease}_token = NULL, {lease}_operation = '', {lease}_expires_at = NULL
    WHERE {condition} AND {_LIVE} AND {lease}_token = %s RETURNING r.id"""


def request_work(condition: str) -> str:
    """Return SQL that makes work due. Parameters: the agent, those of the condition."""
    return f"""UPDATE {_RECORDS} r SET agent_id = %s, due_at = {NEXT_DUE_TIME}
    WHERE {condition} AND {_LIVE} RETURNING r.id"""


def request_operation(condition: str) -> str:
    """Return SQL that makes an operation due now, even after a failure.

    Parameters: the agent, the operation, the person, those of the condition.
    """
    return f"""UPDATE {_RECORDS} r SET agent_id = %s,
        requests = r.requests || jsonb_build_object(%s::text, %s::text),
        due_at = clock_timestamp()::timestamptz(3)
    WHERE {condition} AND {_LIVE} RETURNING r.id"""


def end_request(condition: str) -> str:
    """Return SQL that removes an operation. Parameters: the operation, the condition's."""
    return f"""UPDATE {_RECORDS} r SET requests = r.requests - %s::text
    WHERE {condition} AND {_LIVE} RETURNING r.id"""


def finish_work(condition: str) -> str:
    """Return SQL that ends a request. Parameters: those of the condition, the due time.

    While another worker has a claim, the work becomes due again after that claim would expire: if
    the worker was killed, its claim and its events must be ended. `due_at` is stored in whole
    milliseconds, so one is added.
    """
    return f"""UPDATE {_RECORDS} r SET attempts = 0, error = '', due_at = CASE
        WHEN greatest(lease_expires_at, reflection_expires_at) > clock_timestamp()
        THEN greatest(lease_expires_at, reflection_expires_at) + interval '1 ms' END
    WHERE {condition} AND {_LIVE} AND r.due_at IS NOT DISTINCT FROM %s AND r.requests = '{{}}'
    RETURNING r.id"""


def fail_work(condition: str) -> str:
    """Return SQL that records a failure. Parameters: error, seconds or NULL, condition."""
    return f"""UPDATE {_RECORDS} r SET attempts = least(attempts + 1, 30000), error = %s,
        due_at = CASE WHEN r.requests = '{{}}' THEN clock_timestamp() + make_interval(secs => %s)
            ELSE clock_timestamp() END
    WHERE {condition} AND {_LIVE} RETURNING attempts"""


# Live records with events of workers that were killed: the lease of the operation is free, or it
# has expired. Parameter: the number of records.
LIST_ABANDONED = f"""SELECT DISTINCT l.id FROM mastra_memory_observationevent e
JOIN {_RECORDS} r ON r.id = e.record_id
JOIN {_RECORDS} l ON l.superseded_by_id IS NULL AND l.resource_id = r.resource_id
    AND l.thread_id IS NOT DISTINCT FROM r.thread_id
WHERE e.state = 'running' AND coalesce(CASE
    WHEN e.operation IN ('reflection', 'reflection_buffering') THEN l.reflection_expires_at
    ELSE l.lease_expires_at END, '-infinity') <= clock_timestamp()
LIMIT %s"""

# Parameter: the number of records.
LIST_DUE = f"""SELECT r.id FROM {_RECORDS} r WHERE r.due_at <= {sql.DUE_TIME}
    AND (r.lease_expires_at IS NULL OR r.lease_expires_at <= clock_timestamp())
ORDER BY r.due_at LIMIT %s"""
