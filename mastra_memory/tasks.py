"""Celery tasks, and `enqueue` to run them after commit.

Pending work is stored in database rows. A task only starts it earlier, so a task may run twice or
get lost: `catch_up` and `manage.py mastra_catch_up` find pending work in the database.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from celery import Celery, Task, shared_task
from kombu import pools
from kombu.exceptions import KombuError

from mastra_memory import conf
from mastra_memory.db import routing, times
from mastra_memory.db.statement_timeout import limit_statements
from mastra_memory.embedding import indexing, queue
from mastra_memory.observational import claims, cycle, events, idle, requested_work
from mastra_memory.review import erasure, exports
from mastra_memory.search import tsvector
from mastra_memory.threads import titles

logger = logging.getLogger(__name__)

BROKER_BACKOFF_SECONDS = 30.0
"""Seconds to wait after a failure of the broker, so that it does not slow down every save."""
COALESCE_SECONDS = 0.1
"""Delay of each task. Equal tasks that are enqueued meanwhile are not sent again."""

_broker_retry_at = 0.0
_scheduled_until: dict[tuple[str, tuple[Any, ...]], float] = {}

EMBED_TASK_SECONDS = 20.0
"""How long one task embeds messages before it enqueues another for the rest."""
WRITE_WORDS_BATCH_SIZE = 5_000
"""How many messages one task indexes before it enqueues another for the rest."""
PRUNE_TASK_THREADS = 1_000
"""How many threads one task deletes before it enqueues another for the rest."""
CLONE_MAX_AGE = timedelta(days=1)
"""`catch_up` looks for cloned messages without vectors only in clones that are newer than this. A
copy can lose its vectors only while the clone is made, and the task runs every minute: looking at
all clones would cost too much."""

P = ParamSpec("P")
R = TypeVar("R")


def _limit_task_statements(function: Callable[P, R]) -> Callable[P, R]:
    """Limit the duration of each SQL statement of a task."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with limit_statements(conf.app_settings().STATEMENT_TIMEOUT_TASKS):
            return function(*args, **kwargs)

    return limited


@shared_task
@_limit_task_statements
def embed_pending() -> int:
    """Embed messages that are new or due for another attempt. Return how many."""
    done, more = indexing.embed_pending(seconds=EMBED_TASK_SECONDS)
    if more:
        enqueue(embed_pending)
    return done


@shared_task
@_limit_task_statements
def write_words() -> int:
    """Write the search words of messages that were saved in bulk. Return how many."""
    done = tsvector.index_pending_words(limit=WRITE_WORDS_BATCH_SIZE)
    if done == WRITE_WORDS_BATCH_SIZE:
        enqueue(write_words)
    return done


@shared_task
@_limit_task_statements
def generate_title(thread_id: str) -> None:
    """Generate the title of a thread; if the model is unavailable, try again later."""
    seconds = titles.generate_title(thread_id)
    if seconds is not None:
        enqueue(generate_title, thread_id, after=seconds)


@shared_task
@_limit_task_statements
def observe(record_id: str) -> None:
    """Process what users requested, then observe, buffer, activate and reflect where due.

    If the model is unavailable, try again later.
    """
    requested_work.do_requests(record_id)
    seconds = cycle.run_due_cycle(record_id)
    if seconds is not None:
        enqueue(observe, record_id, after=max(seconds, COALESCE_SECONDS))


@shared_task
@_limit_task_statements
def activate_idle() -> int:
    """Activate the chunks of conversations that are idle. Return how many there were."""
    return idle.activate_idle()


@shared_task
@_limit_task_statements
def resume() -> None:
    """Enqueue work that is due now, such as the work of workers that were killed.

    Without such work it costs five short queries. Run it every few seconds: the interval and
    `leases.LEASE_SECONDS` add up to the time after which another worker takes over.
    """
    if queue.has_due_requests():
        enqueue(embed_pending)
    _enqueue_other_work()


def _enqueue_other_work() -> None:
    for thread_id in titles.list_due_threads():
        enqueue(generate_title, thread_id)
    for job_id in exports.list_unfinished_jobs():
        enqueue(make_export, job_id)
    events.end_abandoned()
    for record_id in claims.list_due_records():
        enqueue(observe, record_id)


@shared_task
@_limit_task_statements
def catch_up() -> None:
    """Enqueue all due work that is recorded in the database, and delete expired exports.

    Also request vectors for cloned messages that have neither vectors nor a request, in clones that
    are newer than `CLONE_MAX_AGE`. `mastra_catch_up` does this for all clones.
    """
    queue.fail_expired()
    for model in conf.get_embedding_models():
        queue.enqueue_cloned_messages(model, max_age=CLONE_MAX_AGE)
    enqueue(embed_pending)
    enqueue(write_words)
    _enqueue_other_work()
    enqueue(activate_idle)
    exports.delete_expired_jobs()


@shared_task
@_limit_task_statements
def prune() -> int:
    """Delete threads that are older than `RETENTION_DAYS`. Return how many.

    Schedule it once a day. It deletes at most `PRUNE_TASK_THREADS`, and enqueues itself for the
    rest.
    """
    days = conf.app_settings().RETENTION_DAYS
    if days is None:
        return 0
    rule = erasure.PruningRule(inactive_since=times.now() - timedelta(days=days))
    batches = erasure.prune(rule, max_threads=PRUNE_TASK_THREADS)
    done = sum(batch["Thread"] for batch in batches)
    if done == PRUNE_TASK_THREADS:
        enqueue(prune)
    return done


@shared_task
@_limit_task_statements
def make_export(job_id: int) -> None:
    """Write the file of an export, unless that is already done."""
    exports.run_export(job_id)


def enqueue(task: Task[..., Any], *args: Any, after: float = COALESCE_SECONDS) -> None:
    """Send a task to the broker after the current transaction commits.

    If the broker cannot be reached, log a warning. The caller gets no exception.

    Args:
        task: The task to run.
        args: Its arguments, which must be JSON values.
        after: The delay in seconds.
    """

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
            "The broker cannot be reached (%s). Pending work stays in the database until"
            " `mastra_catch_up` or the next task finds it. Tasks are not sent for %d s.",
            error,
            BROKER_BACKOFF_SECONDS,
        )


def _get_producers(app: Celery) -> pools.ProducerPool:
    """Return producers for the host's broker with short timeouts.

    The host's own settings may allow a task minutes to reach the broker; a save must not wait.
    """
    timeout = conf.app_settings().BROKER_TIMEOUT
    short_timeouts = {
        "max_retries": 0,
        "socket_connect_timeout": timeout,
        "socket_timeout": timeout,
    }
    connection = app.connection_for_write(connect_timeout=timeout, transport_options=short_timeouts)
    producers: pools.ProducerPool = pools.producers[connection]
    return producers


def _is_already_scheduled(work: tuple[str, tuple[Any, ...]], now: float) -> bool:
    """Return whether the same task was sent and has not started yet; if not, remember it as sent.

    A task starts at least `COALESCE_SECONDS` after it was sent. Within half of that time it has not
    started, so it will also find the rows of this call.
    """
    if now < _scheduled_until.get(work, 0.0):
        return True
    if len(_scheduled_until) > 1_000:
        for key in [key for key, until in _scheduled_until.items() if until <= now]:
            del _scheduled_until[key]
    _scheduled_until[work] = now + COALESCE_SECONDS / 2
    return False
