"""The queue of vectors to be made, which is rows: take some, put them back, ask for more.

No statement here waits for a row that another transaction has locked: deletes of messages lock
requests in an order of their own. What is skipped is deleted or reset by who has locked it, or is
found again when its lease ends.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.db.leases import LEASE_SECONDS
from mastra_memory.db.locking import retry_conflicts

MIN_RETRY_DELAY_SECONDS = 10.0
MAX_RETRY_DELAY_SECONDS = 3_600.0
"""Seconds before the next attempt: doubled each time, up to the longest."""
LOST_WORKER_ERROR = "The process that made the vectors ended before it was done."


@dataclass(frozen=True, slots=True)
class ClaimedMessage:
    """A message whose vectors this process makes now."""

    message_id: str
    thread_id: str
    text: str
    text_hash: bytes


def list_due_models() -> list[str]:
    """The models for which something can be taken."""
    found = sql.fetch_all(
        f"""SELECT DISTINCT model FROM mastra_memory_embeddingrequest
        WHERE failed_at IS NULL AND due_at <= {sql.DUE_TIME}"""
    )
    return [name for (name,) in found]


def has_due_requests() -> bool:
    """Return whether there is something to take."""
    found = sql.fetch_one(
        f"""SELECT EXISTS (SELECT 1 FROM mastra_memory_embeddingrequest
        WHERE failed_at IS NULL AND due_at <= {sql.DUE_TIME})"""
    )
    return bool(found and found[0])


def claim_messages(
    model: str, claim: uuid.UUID, limit: int, scope: sql.Where | None = None
) -> list[ClaimedMessage]:
    """Take up to `limit` requests that are due; nobody else takes them until the lease ends.

    With `scope` (on `r`) take what is asked for there, due or taken by another, but nothing that
    failed before.
    """
    where = scope or sql.Where()
    where.add("r.error = ''" if scope else f"r.due_at <= {sql.DUE_TIME}")
    where.add("r.attempts < %s", conf.app_settings().EMBEDDER_ATTEMPTS)
    found = sql.fetch_all(
        # Materialized: as a plain subquery it may run once a row, and take more than the limit.
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
    return [ClaimedMessage(*cells) for cells in found]


def extend_lease(claim: uuid.UUID, message_ids: Sequence[str]) -> int:
    """Keep these claims for another `LEASE_SECONDS`. Returns how many this worker still holds."""
    ours = sql.Where()
    ours.add("message_id = ANY(%s) AND claim = %s", list(message_ids), claim)
    return sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest
        SET due_at = clock_timestamp() + make_interval(secs => %s)
        WHERE id IN ({_select_unlocked_ids(ours)})""",
        [LEASE_SECONDS, *ours.params],
    )


def _select_unlocked_ids(where: sql.Where) -> str:
    """SQL of the ids of these requests, locked, without those that others have locked."""
    return f"""SELECT id FROM mastra_memory_embeddingrequest WHERE {where}
        ORDER BY id FOR UPDATE SKIP LOCKED"""


@retry_conflicts
def mark_failed(claim: uuid.UUID, message_ids: Sequence[str], reason: str) -> None:
    """Note a failure; try again later, and after the last attempt only when told to."""
    ours = sql.Where()
    ours.add("claim = %s AND message_id = ANY(%s)", claim, list(message_ids))
    sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest SET claim = NULL, error = left(%s, 2000),
            due_at = clock_timestamp()
                + make_interval(secs => least(%s * 2 ^ (greatest(attempts, 1) - 1), %s)),
            failed_at = CASE WHEN attempts >= %s THEN clock_timestamp() END
        WHERE id IN ({_select_unlocked_ids(ours)})""",
        [
            *(reason, MIN_RETRY_DELAY_SECONDS, MAX_RETRY_DELAY_SECONDS),
            *(conf.app_settings().EMBEDDER_ATTEMPTS, *ours.params),
        ],
    )


@retry_conflicts
def defer_model(model: str, reason: str) -> None:
    """Retry the due requests of `model` later, with the delays of `mark_failed`."""
    known = conf.app_settings()
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
            known.EMBEDDER_ATTEMPTS,
            *due.params,
        ],
    )


@retry_conflicts
def release_claim(claim: uuid.UUID) -> None:
    """Give back what is still taken, for anybody to take in a second."""
    ours = sql.Where()
    ours.add("claim = %s", claim)
    sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest SET claim = NULL,
            attempts = greatest(attempts - 1, 0),
            due_at = clock_timestamp() + interval '1 second'
        WHERE id IN ({_select_unlocked_ids(ours)})""",
        ours.params,
    )


@retry_conflicts
def fail_expired() -> int:
    """Mark what was taken as often as is allowed and never came back. Returns how many."""
    lost = sql.Where()
    attempts = conf.app_settings().EMBEDDER_ATTEMPTS
    lost.add("failed_at IS NULL AND attempts >= %s AND due_at < clock_timestamp()", attempts)
    return sql.execute(
        f"""UPDATE mastra_memory_embeddingrequest SET claim = NULL, failed_at = clock_timestamp(),
            error = CASE WHEN error = '' THEN %s ELSE error END
        WHERE id IN ({_select_unlocked_ids(lost)})""",
        [LOST_WORKER_ERROR, *lost.params],
    )


def retry_failed(request_ids: Sequence[int] | None = None) -> int:
    """Try again what failed, from the first attempt on: these requests, or all. Returns how many.

    What only waits for its next attempt does not wait any longer.
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
    """Ask for vectors of `model` where they are missing. Returns for how many messages.

    For the messages that have vectors of any model; with `everything`, for all that have a text.
    `again` asks even where the vectors are there. A message that is being deleted is skipped.
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
def enqueue_copies(model: str) -> int:
    """Ask for vectors of copied messages that have none, in clones where others have some.

    A copy has the vectors or the requests of its original; one with neither was lost. Messages
    saved to the clone later want what their agent's options say, and are left alone.
    """
    return sql.execute(
        f"""INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
        SELECT m.id, m.thread_id, m.resource_id, %s
        FROM mastra_memory_thread t JOIN mastra_memory_message m ON m.thread_id = t.id
        WHERE t.clone_source_id IS NOT NULL AND m.created_at <= t.created_at AND {EMBEDDABLE}
            AND EXISTS (SELECT 1 FROM mastra_memory_messageembedding e
                WHERE e.thread_id = t.id AND e.model = %s)
            AND NOT EXISTS (SELECT 1 FROM mastra_memory_messageembedding e
                WHERE e.message_id = m.id AND e.model = %s)
            AND m.content::text NOT LIKE '%%<working_memory>%%'
        ORDER BY m.id FOR KEY SHARE OF m SKIP LOCKED
        ON CONFLICT (message_id, model) DO NOTHING""",
        [model, model, model],
    )


EMBEDDABLE = r"m.text ~ '\S' AND m.signal <> 'system-reminder'"
"""Messages with words for people. The statement that saves them says the same."""
