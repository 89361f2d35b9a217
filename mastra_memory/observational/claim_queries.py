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
    WHERE {condition} AND {_LIVE} AND {lease}_token = %s"""


def release(lease: str, condition: str) -> str:
    """Return SQL that ends a lease. Parameters: those of the condition, token."""
    return f"""UPDATE {_RECORDS} r
    SET {lease}_token = NULL, {lease}_operation = '', {lease}_expires_at = NULL
    WHERE {condition} AND {_LIVE} AND {lease}_token = %s"""


def request_work(condition: str) -> str:
    """Return SQL that makes work due. Parameters: the agent, those of the condition."""
    return f"""UPDATE {_RECORDS} r SET agent_id = %s, due_at = {NEXT_DUE_TIME}
    WHERE {condition} AND {_LIVE} RETURNING r.id"""


def finish_work(condition: str) -> str:
    """Return SQL that ends a request. Parameters: those of the condition, the due time."""
    return f"""UPDATE {_RECORDS} r SET due_at = NULL, attempts = 0, error = ''
    WHERE {condition} AND {_LIVE} AND r.due_at IS NOT DISTINCT FROM %s"""


def fail_work(condition: str) -> str:
    """Return SQL that records a failure. Parameters: error, seconds or NULL, condition."""
    return f"""UPDATE {_RECORDS} r SET attempts = least(attempts + 1, 30000), error = %s,
        due_at = clock_timestamp() + make_interval(secs => %s)
    WHERE {condition} AND {_LIVE} RETURNING attempts"""


# Parameter: the number of records.
LIST_DUE = f"""SELECT r.id FROM {_RECORDS} r WHERE r.due_at <= {sql.DUE_TIME}
    AND (r.lease_expires_at IS NULL OR r.lease_expires_at <= clock_timestamp())
ORDER BY r.due_at LIMIT %s"""
