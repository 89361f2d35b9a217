"""The queue of messages to embed: the table of `EmbeddingRequest`.

A worker claims requests by writing a token and a time into their rows. After that time another
worker may claim them, because the first one was probably killed. So a worker extends the time (its
lease) while it is running. Every write checks the token, so a worker that has lost its claim
changes nothing.

These are single SQL statements. The ORM would need a transaction with a second statement to lock
the rows. None of them waits for a row that another transaction has locked (SKIP LOCKED): deletes
of messages lock requests in another order, and the two would deadlock. A skipped request is
deleted or reset by the transaction that has locked it, or claimed again when its lease expires.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.db.leases import LEASE_SECONDS
from mastra_memory.db.locking import retry_conflicts

MIN_RETRY_DELAY_SECONDS = 10.0
"""The delay before the second attempt."""
MAX_RETRY_DELAY_SECONDS = 3_600.0
"""The longest delay before the next attempt. Each attempt doubles the delay up to this."""
LOST_WORKER_ERROR = "The worker ended before the message was embedded."


@dataclass(frozen=True, slots=True)
class ClaimedMessage:
    """A message that a worker has claimed."""

    message_id: str
    thread_id: str
    text: str
    text_hash: bytes


def list_due_models() -> list[str]:
    """Return the models that have due requests."""
    found = sql.fetch_all(
        f"""SELECT DISTINCT model FROM mastra_memory_embeddingrequest
        WHERE failed_at IS NULL AND due_at <= {sql.DUE_TIME}"""
    )
    return [name for (name,) in found]


def has_due_requests() -> bool:
    """Return whether any request is due."""
    found = sql.fetch_one(
        f"""SELECT EXISTS (SELECT 1 FROM mastra_memory_embeddingrequest
        WHERE failed_at IS NULL AND due_at <= {sql.DUE_TIME})"""
    )
    return bool(found and found[0])


@retry_conflicts
def claim_messages(
    model: str, claim: uuid.UUID, limit: int, scope: sql.Where | None = None
) -> list[ClaimedMessage]:
    """Claim up to `limit` requests and return their messages.

    Args:
        model: The name of the embedder.
        claim: A new token. No other worker claims the requests until the lease ends.
        limit: How many requests to claim.
        scope: A condition on requests `r`. None claims due requests. With a scope, requests
            are claimed even if another worker has claimed them, because a search needs them. Those
            that failed before are not claimed.
    """
    where = scope or sql.Where()
    where.add("r.error = ''" if scope else f"r.due_at <= {sql.DUE_TIME}")
    where.add("r.attempts < %s", conf.app_settings().EMBEDDER_ATTEMPTS)
    found = sql.fetch_all(
        # Materialized: PostgreSQL may run a plain subquery once per row, and would then claim more
        # requests than the limit.
        f"""WITH taken AS MATERIALIZED (
            SELECT r.id FROM mastra_memory_embeddingrequest r
            WHERE r.model = %s AND r.failed_at IS NULL AND {where}
            ORDER BY r.due_at, r.id LIMIT %s FOR UPDATE SKIP LOCKED)
        UPDATE mastra_memory_embeddingrequest q SET claim = %s, attempts = q.attempts + 1,
            due_at = clock_timestamp() + make_interval(secs => %s)
        FROM mastra_memory_message m, taken
        WHERE m.id = q.message_id AND q.id = taken.id
        RETURNING m.id, m.thread_id, m.text, sha256(convert_to(m.text, 'UTF8'))""",
        [model, *where.params, limit, claim, LEASE_SECONDS],
    )
    return [ClaimedMessage(*row) for row in found]


@retry_conflicts
def extend_lease(claim: uuid.UUID, message_ids: Sequence[str]) -> int:
    """Extend the claims by `LEASE_SECONDS`, and return how many this worker still holds."""
    where = sql.Where()
    where.add("message_id = ANY(%s) AND claim = %s", list(message_ids), claim)
    return sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest
        SET due_at = clock_timestamp() + make_interval(secs => %s)
        WHERE id IN ({_select_unlocked_ids(where)})""",
        [LEASE_SECONDS, *where.params],
    )


def _select_unlocked_ids(where: sql.Where) -> str:
    """Return SQL that selects and locks requests, except those that others have locked.

    Locking in the order of the ids keeps two of these statements from deadlocking.
    """
    return f"""SELECT id FROM mastra_memory_embeddingrequest WHERE {where}
        ORDER BY id FOR UPDATE SKIP LOCKED"""


@retry_conflicts
def mark_failed(claim: uuid.UUID, message_ids: Sequence[str], reason: str) -> None:
    """Record a failure, and set the time of the next attempt.

    After `EMBEDDER_ATTEMPTS` attempts, no further attempt is made until `retry_failed` is called.
    """
    where = sql.Where()
    where.add("claim = %s AND message_id = ANY(%s)", claim, list(message_ids))
    sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest SET claim = NULL, error = left(%s, 2000),
            due_at = clock_timestamp()
                + make_interval(secs => least(%s * 2 ^ (greatest(attempts, 1) - 1), %s)),
            failed_at = CASE WHEN attempts >= %s THEN clock_timestamp() END
        WHERE id IN ({_select_unlocked_ids(where)})""",
        [
            *(reason, MIN_RETRY_DELAY_SECONDS, MAX_RETRY_DELAY_SECONDS),
            *(conf.app_settings().EMBEDDER_ATTEMPTS, *where.params),
        ],
    )


@retry_conflicts
def defer_model(model: str, reason: str) -> None:
    """Retry the due requests of `model` later, with the delays of `mark_failed`."""
    settings = conf.app_settings()
    due = sql.Where()
    due.add(f"model = %s AND failed_at IS NULL AND due_at <= {sql.DUE_TIME}", model)
    sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest SET error = left(%s, 2000),
            attempts = attempts + 1, due_at = clock_timestamp()
                + make_interval(secs => least(%s * 2 ^ attempts, %s)),
            failed_at = CASE WHEN attempts + 1 >= %s THEN clock_timestamp() END
        WHERE id IN ({_select_unlocked_ids(due)})""",
        [
            reason,
            MIN_RETRY_DELAY_SECONDS,
            MAX_RETRY_DELAY_SECONDS,
            settings.EMBEDDER_ATTEMPTS,
            *due.params,
        ],
    )


@retry_conflicts
def release_claim(claim: uuid.UUID) -> None:
    """Release the remaining claims. Any worker may claim the requests after one second.

    The attempt is not counted, because the embedder was not called.
    """
    where = sql.Where()
    where.add("claim = %s", claim)
    sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest SET claim = NULL,
            attempts = greatest(attempts - 1, 0),
            due_at = clock_timestamp() + interval '1 second'
        WHERE id IN ({_select_unlocked_ids(where)})""",
        where.params,
    )


@retry_conflicts
def fail_expired() -> int:
    """Mark requests as failed whose last allowed attempt was never finished; return how many.

    This applies to a message that crashes its worker, for example because it needs too much memory.
    """
    lost = sql.Where()
    attempts = conf.app_settings().EMBEDDER_ATTEMPTS
    lost.add("failed_at IS NULL AND attempts >= %s AND due_at < clock_timestamp()", attempts)
    return sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest SET claim = NULL, failed_at = clock_timestamp(),
            error = CASE WHEN error = '' THEN %s ELSE error END
        WHERE id IN ({_select_unlocked_ids(lost)})""",
        [LOST_WORKER_ERROR, *lost.params],
    )


@retry_conflicts
def retry_failed(request_ids: Sequence[int] | None = None) -> int:
    """Retry failed requests at once, counting attempts from 0, and return how many.

    Requests that wait for their next attempt are retried as well.

    Args:
        request_ids: Only these requests; None for all.
    """
    where = sql.Where()
    where.add("(failed_at IS NOT NULL OR (error <> '' AND due_at > clock_timestamp()))")
    if request_ids is not None:
        where.add("id = ANY(%s)", list(request_ids))
    return sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest SET attempts = 0, error = '', failed_at = NULL,
            due_at = clock_timestamp(), claim = NULL WHERE id IN ({_select_unlocked_ids(where)})""",
        where.params,
    )


@retry_conflicts
def enqueue(model: str, *, everything: bool = False, again: bool = False) -> int:
    """Enqueue messages that have no vectors of `model`, and return how many.

    Messages that another transaction is deleting are skipped.

    Args:
        model: The name of the embedder.
        everything: Enqueue all messages with text; otherwise those with vectors of any model.
        again: Enqueue messages that have vectors of `model` too.
    """
    where = sql.Where()
    where.add(EMBEDDABLE)
    if not everything:
        where.add("""EXISTS (SELECT 1 FROM mastra_memory_messageembedding e
            WHERE e.message_id = m.id)""")
    if not again:
        where.add(
            """NOT EXISTS (SELECT 1 FROM mastra_memory_messageembedding e
            WHERE e.message_id = m.id AND e.model = %s)""",
            model,
        )
    return sql.execute(
        f"""INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
        SELECT m.id, m.thread_id, m.resource_id, %s FROM mastra_memory_message m WHERE {where}
        ORDER BY m.id FOR KEY SHARE OF m SKIP LOCKED
        ON CONFLICT (message_id, model) DO NOTHING""",
        [model, *where.params],
    )


@retry_conflicts
def enqueue_cloned_messages(model: str, *, max_age: timedelta | None = None) -> int:
    """Enqueue messages of clones that have no vectors although other messages of the clone do.

    Cloning copies the vectors or the requests of each message. If a copy has neither, a worker
    changed the original at the same time. Messages that were saved to the clone later are not
    enqueued: whether they have vectors depends on their agent's options.

    Args:
        model: The name of the embedder.
        max_age: Look only at clones that were created within this time; None for all.
    """
    where = sql.Where()
    if max_age is not None:
        where.add("t.created_at >= clock_timestamp() - %s", max_age)
    return sql.execute(
        f"""INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
        SELECT m.id, m.thread_id, m.resource_id, %s
        FROM mastra_memory_thread t JOIN mastra_memory_message m ON m.thread_id = t.id
        WHERE {where} AND t.clone_source_id IS NOT NULL AND m.created_at <= t.created_at
            AND {EMBEDDABLE}
            AND EXISTS (SELECT 1 FROM mastra_memory_messageembedding e
                WHERE e.thread_id = t.id AND e.model = %s)
            AND NOT EXISTS (SELECT 1 FROM mastra_memory_messageembedding e
                WHERE e.message_id = m.id AND e.model = %s)
            AND m.content::text NOT LIKE '%%<working_memory>%%'
        ORDER BY m.id FOR KEY SHARE OF m SKIP LOCKED
        ON CONFLICT (message_id, model) DO NOTHING""",
        [model, *where.params, model, model],
    )


EMBEDDABLE = r"m.text ~ '\S' AND m.signal <> 'system-reminder'"
"""SQL condition on a message `m`: it has text and is not a system reminder. The statement in
`messages.storage` that saves messages has the same condition."""
