"""Lock rows in a fixed order, and retry transactions that PostgreSQL rolls back.

Two transactions that take the same locks in different orders end in a deadlock. Every writer of
this app therefore takes its locks in this order, and within one step in ascending order of ids
(ids have the collation "C", so that Python and PostgreSQL sort them alike):

1. Threads. A writer that changes messages locks all their threads first: those that the messages
   go to and those that they come from (`FOR NO KEY UPDATE`; cloning reads with `FOR SHARE`).
   Statements that delete or transfer a thread take their own, stronger lock, one thread at a
   time. A writer that only refers to threads by foreign keys, like a review, locks them
   `FOR KEY SHARE` if there are several.
2. Reviews, tags, notes and scores of those threads.
3. Working memory: the thread's, then the resource's; then observational records and their chunks.
   A save updates observational records last, after its messages. This cannot deadlock: a
   transaction that locks a record and then messages has already locked their threads.
4. Messages. Once their threads are locked, no other transaction writes them. New ones are inserted
   in the order of their ids, since two inserts of one id wait for each other too.
5. Embedding requests, then vectors, then message observations. Rows that a trigger or
   a cascading delete changes along with a message are locked in this step.

Workers lock in another order, because they start with requests or messages. They never wait for a
row: they use `SKIP LOCKED`, and process locked rows later.

Importers lock the threads that exist first, in the same order, and then insert what is missing.

A lock order does not help if a host project wraps several calls in one transaction, or with the
isolation levels REPEATABLE READ and SERIALIZABLE. PostgreSQL then rolls a transaction back, and
`retry_conflicts` runs it again, or raises `ConcurrentUpdate` inside the host's transaction.

A writer that inserts a row which refers to a thread locks the thread first, `FOR KEY SHARE` at
least. Otherwise the thread may be deleted or transferred after the writer has looked at it.
"""

import random
import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

from django.db import IntegrityError, OperationalError

from mastra_memory.db import routing, sql
from mastra_memory.exceptions import ConcurrentUpdate, ThreadNotFound

P = ParamSpec("P")
R = TypeVar("R")

CONFLICT_STATES = frozenset({"40001", "40P01"})
"""SQLSTATEs of transactions that can be run again: serialization failure, deadlock."""
RACE_STATES = frozenset({"23503", "23505"})
"""SQLSTATEs of rows that another transaction deleted, or inserted too, since they were looked up:
foreign key violation, unique violation. Running the function again resolves it."""
MAX_ATTEMPTS = 8
MAX_RACE_ATTEMPTS = 3
"""Attempts after an error of `RACE_STATES`. An error that persists is not caused by a race."""
FIRST_DELAY_SECONDS = 0.02
"""Upper bound of the random delay before the second attempt; it doubles with each attempt."""

LockStrength = Literal["NO KEY UPDATE", "KEY SHARE"]


def is_conflict(error: BaseException) -> bool:
    """Return whether the transaction was rolled back in favour of another one."""
    if isinstance(error, ConcurrentUpdate):
        return True
    return getattr(error.__cause__, "sqlstate", None) in CONFLICT_STATES


def retry_conflicts(function: Callable[P, R]) -> Callable[P, R]:
    """Run the function again when PostgreSQL rolls it back because of concurrent transactions.

    The function must open its transaction itself, and its arguments must not be iterators. Inside
    a transaction of the caller only the caller can start again: the conflict is then raised at
    once, as `ConcurrentUpdate`. The same is raised after `MAX_ATTEMPTS`.

    It also runs again if another transaction has deleted a row that this one refers to, or has
    inserted the same row.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        attempt = 1
        while True:
            try:
                return function(*args, **kwargs)
            except (OperationalError, ConcurrentUpdate) as error:
                if not is_conflict(error):
                    raise
                if routing.get_connection().in_atomic_block or attempt == MAX_ATTEMPTS:
                    raise ConcurrentUpdate from error
            except IntegrityError as error:
                is_race = getattr(error.__cause__, "sqlstate", None) in RACE_STATES
                if not is_race or attempt >= MAX_RACE_ATTEMPTS:
                    raise
                if routing.get_connection().in_atomic_block:
                    raise
            # Random, so that the transactions do not meet again at once.
            time.sleep(random.uniform(0, FIRST_DELAY_SECONDS * 2 ** (attempt - 1)))
            attempt += 1

    return call


def lock_threads(
    thread_ids: Iterable[str], strength: LockStrength = "NO KEY UPDATE"
) -> dict[str, str]:
    """Lock the threads in the order of their ids; return the resource of each that exists."""
    found = sql.fetch_all(
        f"""SELECT id, resource_id FROM mastra_memory_thread WHERE id = ANY(%s)
        ORDER BY id FOR {strength}""",
        [list(set(thread_ids))],
    )
    return dict(found)


def lock_thread(thread_id: str, strength: LockStrength = "NO KEY UPDATE") -> str:
    """Lock one thread until the end of the transaction, and return its resource.

    Raises:
        ThreadNotFound: The thread does not exist, or was deleted meanwhile.
    """
    resource_id = lock_threads([thread_id], strength).get(thread_id)
    if resource_id is None:
        raise ThreadNotFound
    return resource_id


def lock_existing_threads(thread_ids: Iterable[str]) -> list[str]:
    """Lock the threads `FOR KEY SHARE`, and return the ids of those that exist, in order.

    Raises:
        ThreadNotFound: There are ids, and none of the threads exists.
    """
    ids = list(thread_ids)
    existing = sorted(lock_threads(ids, "KEY SHARE"))
    if ids and not existing:
        raise ThreadNotFound
    return existing
