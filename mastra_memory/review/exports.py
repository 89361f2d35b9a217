"""Export jobs of the admin: small ones run during the request, others in a Celery worker."""

import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import orjson
from django.utils import timezone

from mastra_memory.content import redaction
from mastra_memory.db import json_text, routing, times
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exporters import jsonl, markdown, spreadsheet
from mastra_memory.exporters.output import WriteBytes
from mastra_memory.exporters.selection import ExportSelection
from mastra_memory.models import ExportJob, Message, Thread
from mastra_memory.review import masked_files, queries

MAX_IMMEDIATE_MESSAGES = 2_000
"""Messages that are exported while the browser waits."""
THREADS_PER_BATCH = 100
"""Threads that are exported between two updates of the progress."""
FILE_LIFETIME = timedelta(days=7)
"""How long the file of a finished export is kept."""
RETRY_PERIOD = timedelta(hours=6)
"""How long an interrupted export is tried again.

An export that kills its worker each time, for lack of memory, must not be tried forever.
"""
LOCK_CLASS = 0x6D6D6578  # "mmex"
"""Class of PostgreSQL's advisory locks that are held while an export runs."""

UNFINISHED_STATES = (ExportJob.State.WAITING, ExportJob.State.RUNNING)
FORMATS = {
    ExportJob.Format.JSONL: (jsonl, "application/x-ndjson"),
    ExportJob.Format.MARKDOWN: (markdown, "text/markdown; charset=utf-8"),
    ExportJob.Format.CSV: (spreadsheet, "text/csv; charset=utf-8"),
}
"""Exporter and MIME type by format."""


def is_small(job: ExportJob) -> bool:
    """Return True if the export can run while a browser waits.

    Counts at most one message more than the limit, however long the threads are.
    """
    messages = Message.objects.filter(thread__in=job.thread_ids).values("pk")
    return (
        len(job.thread_ids) <= MAX_IMMEDIATE_MESSAGES
        and messages[: MAX_IMMEDIATE_MESSAGES + 1].count() <= MAX_IMMEDIATE_MESSAGES
    )


def run_export(job_id: int) -> bool:
    """Create the file of an export, and return True if this call has done it.

    Return False if the job is finished or deleted, or if another worker is running it. An
    interrupted job starts from the beginning. An error is stored with the job and raised again.
    """
    with _try_lock(job_id) as is_locked:
        job = ExportJob.objects.filter(pk=job_id).exclude(state=ExportJob.State.DONE).first()
        if not is_locked or job is None:
            return False
        _update_job(job, state=ExportJob.State.RUNNING, done=0, error="")
        try:
            content, thread_ids = _build_file(job)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"[:500]
            _update_job(job, state=ExportJob.State.FAILED, error=message)
            raise
        _update_job(
            job,
            state=ExportJob.State.DONE,
            content=content,
            finished_at=times.now(),
            done=len(thread_ids),
            thread_ids=thread_ids,
        )
        return True


@contextmanager
def _try_lock(job_id: int) -> Iterator[bool]:
    """Try to lock the job, and yield True if no other connection holds its lock.

    An advisory lock distinguishes running from interrupted jobs without a timeout.
    """
    is_locked = queries.try_lock_export(job_id, lock_class=LOCK_CLASS)
    try:
        yield is_locked
    finally:
        if is_locked:
            queries.unlock_export(job_id, lock_class=LOCK_CLASS)


def list_unfinished_jobs() -> list[int]:
    """Return the keys of jobs that are waiting, running or interrupted.

    `run_export` skips those that are running.
    """
    jobs = ExportJob.objects.filter(
        state__in=UNFINISHED_STATES, created_at__gt=times.now() - RETRY_PERIOD
    )
    return list(jobs.order_by("pk").values_list("pk", flat=True))


def fail_abandoned_jobs() -> None:
    """Mark unfinished jobs that are older than `RETRY_PERIOD` as failed.

    The user can start them again.
    """
    old = ExportJob.objects.filter(
        state__in=UNFINISHED_STATES, created_at__lt=times.now() - RETRY_PERIOD
    )
    for job in old.defer("content"):
        with _try_lock(job.pk) as is_locked:
            if is_locked:
                error = "The export was interrupted repeatedly."
                _update_job(job, state=ExportJob.State.FAILED, error=error)


@retry_conflicts
@routing.atomic
def delete_expired_jobs() -> int:
    """Delete old exports, and those that contain a thread that was deleted since.

    Return how many were deleted.
    """
    fail_abandoned_jobs()
    finished = ExportJob.objects.exclude(state__in=UNFINISHED_STATES)
    expired, _by_model = finished.filter(created_at__lt=times.now() - FILE_LIFETIME).delete()
    stale, _by_model = ExportJob.objects.filter(pk__in=queries.list_stale_exports()).delete()
    return expired + stale


def get_file(job: ExportJob) -> tuple[bytes, str, str]:
    """Return the decompressed file of a finished export, its name and its MIME type."""
    module, mime_type = FORMATS[ExportJob.Format(job.format)]
    stamp = timezone.localtime(job.created_at).strftime("%Y-%m-%d-%H%M")
    return gzip.decompress(bytes(job.content or b"")), f"threads-{stamp}{module.SUFFIX}", mime_type


@retry_conflicts
def _update_job(job: ExportJob, **fields: object) -> None:
    ExportJob.objects.filter(pk=job.pk).update(**fields)


def _build_file(job: ExportJob) -> tuple[bytes, list[str]]:
    """Return the compressed file and the ids of the threads in it."""
    module, _mime_type = FORMATS[ExportJob.Format(job.format)]
    buffer = io.BytesIO()
    exported: list[str] = []
    with gzip.GzipFile("", "wb", fileobj=buffer, mtime=0) as packed:
        write = _mask_output(job, packed.write)
        for thread_ids in _iterate_batches(job.thread_ids):
            selection = ExportSelection(thread_ids=thread_ids)
            module.export(
                selection, _skip_header(job, write) if exported else write, _ignore_progress
            )
            exported += thread_ids
            _update_job(job, done=len(exported))
    return buffer.getvalue(), exported


def _ignore_progress() -> None:
    """Ignore the progress: updates in the transaction of an exporter are not visible to others."""


def _iterate_batches(thread_ids: Sequence[str]) -> Iterator[list[str]]:
    """Yield the ids of the threads that still exist, oldest first."""
    threads = Thread.objects.filter(pk__in=thread_ids).order_by("created_at", "pk")
    ids = list(threads.values_list("pk", flat=True))
    for start in range(0, len(ids), THREADS_PER_BATCH):
        yield ids[start : start + THREADS_PER_BATCH]


def _skip_header(job: ExportJob, write: WriteBytes) -> WriteBytes:
    """Return a writer that leaves out the first line, which only the first batch needs.

    Markdown files have no such line.
    """
    if job.format == ExportJob.Format.MARKDOWN:
        return write
    is_header = True

    def write_rest(data: bytes) -> None:
        nonlocal is_header
        if not is_header:
            write(data)
        is_header = False

    return write_rest


def _mask_output(job: ExportJob, write: Callable[[bytes], object]) -> WriteBytes:
    """Return a writer that masks personal data, if the owner of the job may not see it."""
    mask = redaction.get_mask()
    if not job.masked or mask is redaction.keep_text:
        return write
    if job.format == ExportJob.Format.JSONL:
        return lambda data: write(b"".join(_mask_line(line, mask) for line in data.splitlines()))
    return lambda data: write(mask(data.decode()).encode())


def _mask_line(line: bytes, mask: redaction.Mask) -> bytes:
    """Mask the values of one line of JSON, and the files inside it, so that it stays valid."""
    value = json_text.loads(line)
    masked = redaction.mask_json(value, mask)
    masked_files.mask_embedded_files(value.get("content"), masked.get("content"), mask)
    return orjson.dumps(masked) + b"\n"
