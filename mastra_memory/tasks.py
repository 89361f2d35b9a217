"""Work for later: the Celery tasks and `enqueue`. Every task is a hint; the rows are the truth.

A task takes ids at most, calls one domain function, and may run twice. What a lost task would
have done is found by `manage.py mastra_catch_up` from rows alone.
"""

import logging
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from celery import Celery, Task, shared_task
from kombu import pools
from kombu.exceptions import KombuError

from mastra_memory import conf
from mastra_memory.db import routing
from mastra_memory.db.statement_timeout import limit_statements
from mastra_memory.embedding import indexing, queue
from mastra_memory.review import exports
from mastra_memory.search import tsvector
from mastra_memory.threads import titles

logger = logging.getLogger(__name__)

BROKER_BACKOFF_SECONDS = 30.0
"""Seconds without another attempt after the broker failed."""
COALESCE_SECONDS = 0.1
"""Seconds that a task waits, so that what is enqueued meanwhile needs no task of its own."""

_broker_retry_at = 0.0
_scheduled_until: dict[tuple[str, tuple[Any, ...]], float] = {}

EMBED_TASK_SECONDS = 20.0
"""How long one task embeds before it leaves the rest to the next."""
WRITE_WORDS_BATCH_SIZE = 5_000
"""How many messages one task reads the words of before it leaves the rest to the next."""


P = ParamSpec("P")
R = TypeVar("R")


def _limit_task_statements(function: Callable[P, R]) -> Callable[P, R]:
    """Run the task with a limit on each of its SQL statements."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with limit_statements(conf.app_settings().STATEMENT_TIMEOUT_TASKS):
            return function(*args, **kwargs)

    return limited


@shared_task
@_limit_task_statements
def embed_pending() -> int:
    """Embed what was saved and what is due again. Returns how many messages it were."""
    done, more = indexing.embed_pending(seconds=EMBED_TASK_SECONDS)
    if more:
        enqueue(embed_pending)
    return done


@shared_task
@_limit_task_statements
def write_words() -> int:
    """Write the searchable words of what was saved in bulk. Returns how many messages it were."""
    done = tsvector.index_pending_words(limit=WRITE_WORDS_BATCH_SIZE)
    if done == WRITE_WORDS_BATCH_SIZE:
        enqueue(write_words)
    return done


@shared_task
@_limit_task_statements
def generate_title(thread_id: str) -> None:
    """Give a thread its title; when the model is unavailable, try again later."""
    seconds = titles.generate_title(thread_id)
    if seconds is not None:
        enqueue(generate_title, thread_id, after=seconds)


@shared_task
@_limit_task_statements
def resume() -> None:
    """Ask for the work that is due now, above all that of workers that were killed.

    Cheap where there is none. Run it every few seconds: together with `leases.LEASE_SECONDS` the
    interval decides how soon another worker takes over.
    """
    if queue.has_due_requests():
        enqueue(embed_pending)
    _enqueue_titles_and_exports()


def _enqueue_titles_and_exports() -> None:
    for thread_id in titles.list_due_threads():
        enqueue(generate_title, thread_id)
    for job_id in exports.list_unfinished_jobs():
        enqueue(make_export, job_id)


@shared_task
@_limit_task_statements
def catch_up() -> None:
    """Ask for all work that the rows say is due, whatever became of the tasks for it."""
    queue.fail_expired()
    enqueue(embed_pending)
    enqueue(write_words)
    _enqueue_titles_and_exports()
    exports.delete_expired_jobs()


@shared_task
@_limit_task_statements
def make_export(job_id: int) -> None:
    """Make the file of an export; one that is done stays as it is."""
    exports.run_export(job_id)


def enqueue(task: Task[..., Any], *args: Any, after: float = COALESCE_SECONDS) -> None:
    """Run `task` after commit; a broker that is down is logged, not shown to the caller."""

    def send() -> None:  # not a partial: Django 5.2 logs the callback's __qualname__
        _send(task, args, after)

    routing.on_commit(send)


def _send(task: Task[..., Any], args: tuple[Any, ...], after: float) -> None:
    global _broker_retry_at
    if task.app.conf.task_always_eager:
        task.apply(args)
        return
    now = time.monotonic()
    if now < _broker_retry_at or _is_already_scheduled((task.name, args), now):
        return
    try:
        with _get_producers(task.app).acquire(block=True) as producer:
            task.apply_async(
                args, countdown=after, producer=producer, retry=False, ignore_result=True
            )
    except (KombuError, OSError) as error:
        _broker_retry_at = time.monotonic() + BROKER_BACKOFF_SECONDS
        logger.warning(
            "The broker cannot be reached (%s). Work stays in the rows until `mastra_catch_up`"
            " or the next task finds it; no attempt for %d s.",
            error,
            BROKER_BACKOFF_SECONDS,
        )


def _get_producers(app: Celery) -> pools.ProducerPool:
    """The host's broker, reached with little patience, whatever the host's own tasks may take."""
    timeout = conf.app_settings().BROKER_TIMEOUT
    impatient = {"max_retries": 0, "socket_connect_timeout": timeout, "socket_timeout": timeout}
    connection = app.connection_for_write(connect_timeout=timeout, transport_options=impatient)
    return pools.producers[connection]


def _is_already_scheduled(work: tuple[str, tuple[Any, ...]], now: float) -> bool:
    """Whether the same task was sent just now and has not begun; else note that it will be."""
    if now < _scheduled_until.get(work, 0.0):
        return True
    if len(_scheduled_until) > 1_000:
        for known in [known for known, until in _scheduled_until.items() if until <= now]:
            del _scheduled_until[known]
    _scheduled_until[work] = now + COALESCE_SECONDS / 2
    return False
