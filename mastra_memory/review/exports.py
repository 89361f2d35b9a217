"""Exports that people ask for in the admin: made at once when small, else in the background."""

import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import orjson
from django.utils import timezone

from mastra_memory.content import redaction
from mastra_memory.db import json_text, routing, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exporters import jsonl, markdown, spreadsheet
from mastra_memory.exporters.output import WriteBytes
from mastra_memory.exporters.selection import ExportSelection
from mastra_memory.models import ExportJob, Message, Thread
from mastra_memory.review import masked_files

MAX_IMMEDIATE_MESSAGES = 2_000
"""So many messages are exported while one waits."""
THREADS_PER_BATCH = 100
"""Threads between two marks of progress."""
FILE_LIFETIME = timedelta(days=7)
"""So long a finished file stays; then the export goes."""
RETRY_PERIOD = timedelta(hours=6)
"""So long an export that broke off is tried again by itself: one that kills workers must end."""
ADVISORY_LOCK_CLASS = 0x6D6D6578  # "mmex"
"""Advisory locks of this class are held while an export is made: a dead worker holds none."""

UNFINISHED_STATES = (ExportJob.State.WAITING, ExportJob.State.RUNNING)
FORMATS = {
    ExportJob.Format.JSONL: (jsonl, "application/x-ndjson"),
    ExportJob.Format.MARKDOWN: (markdown, "text/markdown; charset=utf-8"),
    ExportJob.Format.CSV: (spreadsheet, "text/csv; charset=utf-8"),
}


def is_small(job: ExportJob) -> bool:
    """Whether it can be made while a browser waits; looks at no more messages than it must."""
    messages = Message.objects.filter(thread__in=job.thread_ids).values("pk")
    return (
        len(job.thread_ids) <= MAX_IMMEDIATE_MESSAGES
        and messages[: MAX_IMMEDIATE_MESSAGES + 1].count() <= MAX_IMMEDIATE_MESSAGES
    )


def run_export(job_id: int) -> bool:
    """Make the file; whether it was made here and now.

    A job that is done, or that somebody else is making, stays as it is; one that broke off begins
    anew.
    """
    with _try_lock(job_id) as is_ours:
        job = ExportJob.objects.filter(pk=job_id).exclude(state=ExportJob.State.DONE).first()
        if not is_ours or job is None:
            return False
        _update_job(job, state=ExportJob.State.RUNNING, done=0, error="")
        try:
            content, thread_ids = _build_file(job)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"[:500]
            _update_job(job, state=ExportJob.State.FAILED, error=told)
            raise
        done = {"state": ExportJob.State.DONE, "done": len(thread_ids), "thread_ids": thread_ids}
        _update_job(job, content=content, finished_at=timezone.now(), **done)
        return True


@contextmanager
def _try_lock(job_id: int) -> Iterator[bool]:
    """Hold the job for this connection, if nobody else does; the database lets go of the dead."""
    key = (ADVISORY_LOCK_CLASS, job_id % 2**31)
    found = sql.fetch_one("SELECT pg_try_advisory_lock(%s, %s)", key)
    is_ours = bool(found and found[0])
    try:
        yield is_ours
    finally:
        if is_ours:
            sql.fetch_one("SELECT pg_advisory_unlock(%s, %s)", key)


def list_unfinished_jobs() -> list[int]:
    """Jobs that wait or broke off, and some that are being made: `run` tells them apart."""
    jobs = ExportJob.objects.filter(
        state__in=UNFINISHED_STATES, created_at__gt=timezone.now() - RETRY_PERIOD
    )
    return list(jobs.order_by("pk").values_list("pk", flat=True))


def fail_abandoned_jobs() -> None:
    """Mark what broke off again and again as failed; its owner can start it once more."""
    old = ExportJob.objects.filter(
        state__in=UNFINISHED_STATES, created_at__lt=timezone.now() - RETRY_PERIOD
    )
    for job in old.defer("content"):
        with _try_lock(job.pk) as nobody_works:
            if nobody_works:
                _update_job(
                    job, state=ExportJob.State.FAILED, error="It broke off again and again."
                )


@retry_conflicts
@routing.atomic
def delete_expired_jobs() -> int:
    """Delete exports that are old, and those that hold a conversation that was deleted since."""
    fail_abandoned_jobs()
    finished = ExportJob.objects.exclude(state__in=UNFINISHED_STATES)
    removed, _kinds = finished.filter(created_at__lt=timezone.now() - FILE_LIFETIME).delete()
    stale = sql.fetch_all(
        """SELECT j.id FROM mastra_memory_exportjob j WHERE j.state = %s AND EXISTS (
            SELECT FROM jsonb_array_elements_text(j.thread_ids) AS held (id)
            WHERE NOT EXISTS (SELECT FROM mastra_memory_thread t WHERE t.id = held.id))""",
        [ExportJob.State.DONE],
    )
    gone, _kinds = ExportJob.objects.filter(pk__in=[pk for (pk,) in stale]).delete()
    return removed + gone


def get_file(job: ExportJob) -> tuple[bytes, str, str]:
    """The finished file, its name and its type."""
    module, mime_type = FORMATS[ExportJob.Format(job.format)]
    stamp = timezone.localtime(job.created_at).strftime("%Y-%m-%d-%H%M")
    return gzip.decompress(bytes(job.content or b"")), f"threads-{stamp}{module.SUFFIX}", mime_type


def _update_job(job: ExportJob, **fields: object) -> None:
    ExportJob.objects.filter(pk=job.pk).update(**fields)


def _build_file(job: ExportJob) -> tuple[bytes, list[str]]:
    """The packed file, and the threads that are in it."""
    buffer = io.BytesIO()
    done: list[str] = []
    with gzip.GzipFile("", "wb", fileobj=buffer, mtime=0) as packed:
        write = _mask_output(job, packed.write)
        for batch in _iterate_batches(job.thread_ids):
            module, _mime_type = FORMATS[ExportJob.Format(job.format)]
            selection = ExportSelection(thread_ids=batch)
            module.export(
                selection, write if not done else _skip_first_line(job, write), _ignore_progress
            )
            done += batch
            _update_job(job, done=len(done))
    return buffer.getvalue(), done


def _ignore_progress() -> None:
    """Progress is noted batch by batch: inside a batch's transaction nobody would see it."""


def _iterate_batches(thread_ids: Sequence[str]) -> Iterator[list[str]]:
    """The threads that are still there, oldest first."""
    there = Thread.objects.filter(pk__in=thread_ids).order_by("created_at", "pk")
    ids = list(there.values_list("pk", flat=True))
    for at in range(0, len(ids), THREADS_PER_BATCH):
        yield ids[at : at + THREADS_PER_BATCH]


def _skip_first_line(job: ExportJob, write: WriteBytes) -> WriteBytes:
    """Without the first line, where the format has a heading of its own."""
    if job.format == ExportJob.Format.MARKDOWN:
        return write
    lines = 0

    def later(data: bytes) -> None:
        nonlocal lines
        lines += 1
        if lines > 1:
            write(data)

    return later


def _mask_output(job: ExportJob, write: Callable[[bytes], object]) -> WriteBytes:
    """Masks what the owner may not see: in JSON value by value, so that it stays JSON."""
    mask = redaction.get_mask()
    if not job.masked or mask is redaction.keep_text:
        return write
    if job.format == ExportJob.Format.JSONL:
        return lambda data: write(b"".join(_mask_line(line, mask) for line in data.splitlines()))
    return lambda data: write(mask(data.decode()).encode())


def _mask_line(line: bytes, mask: redaction.Mask) -> bytes:
    """Return a line of JSON with its values and the files of a message masked."""
    value = json_text.loads(line)
    masked = redaction.mask_json(value, mask)
    masked_files.mask_embedded_files(value.get("content"), masked.get("content"), mask)
    return orjson.dumps(masked) + b"\n"
