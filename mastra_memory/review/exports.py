"""Exports that people ask for in the admin: made at once when small, else in the background."""

import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import orjson
from django.db import transaction
from django.utils import timezone

from mastra_memory.content import redaction
from mastra_memory.db import json_text, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exporters import jsonl, markdown, spreadsheet
from mastra_memory.exporters.output import Write
from mastra_memory.exporters.selection import Selection
from mastra_memory.models import ExportJob, Message, Thread
from mastra_memory.review import masked_files

SMALL = 2_000
"""So many messages are exported while one waits."""
BATCH = 100
"""Threads between two marks of progress."""
KEPT = timedelta(days=7)
"""So long a finished file stays; then the export goes."""
TRIED = timedelta(hours=6)
"""So long an export that broke off is tried again by itself: one that kills workers must end."""
LOCK = 0x6D6D6578  # "mmex"
"""Advisory locks of this class are held while an export is made: a dead worker holds none."""

UNFINISHED = (ExportJob.State.WAITING, ExportJob.State.RUNNING)
FORMATS = {
    ExportJob.Format.JSONL: (jsonl, "application/x-ndjson"),
    ExportJob.Format.MARKDOWN: (markdown, "text/markdown; charset=utf-8"),
    ExportJob.Format.CSV: (spreadsheet, "text/csv; charset=utf-8"),
}


def is_small(job: ExportJob) -> bool:
    """Whether it can be made while a browser waits; looks at no more messages than it must."""
    messages = Message.objects.filter(thread__in=job.thread_ids).values("pk")
    return len(job.thread_ids) <= SMALL and messages[: SMALL + 1].count() <= SMALL


def run(job_id: int) -> bool:
    """Make the file; whether it was made here and now.

    A job that is done, or that somebody else is making, stays as it is; one that broke off begins
    anew.
    """
    with _held(job_id) as is_ours:
        job = ExportJob.objects.filter(pk=job_id).exclude(state=ExportJob.State.DONE).first()
        if not is_ours or job is None:
            return False
        _note(job, state=ExportJob.State.RUNNING, done=0, error="")
        try:
            content, thread_ids = _made(job)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"[:500]
            _note(job, state=ExportJob.State.FAILED, error=told)
            raise
        done = {"state": ExportJob.State.DONE, "done": len(thread_ids), "thread_ids": thread_ids}
        _note(job, content=content, finished_at=timezone.now(), **done)
        return True


@contextmanager
def _held(job_id: int) -> Iterator[bool]:
    """Hold the job for this connection, if nobody else does; the database lets go of the dead."""
    key = (LOCK, job_id % 2**31)
    found = sql.fetch_one("SELECT pg_try_advisory_lock(%s, %s)", key)
    is_ours = bool(found and found[0])
    try:
        yield is_ours
    finally:
        if is_ours:
            sql.fetch_one("SELECT pg_advisory_unlock(%s, %s)", key)


def list_unfinished() -> list[int]:
    """Jobs that wait or broke off, and some that are being made: `run` tells them apart."""
    jobs = ExportJob.objects.filter(state__in=UNFINISHED, created_at__gt=timezone.now() - TRIED)
    return list(jobs.order_by("pk").values_list("pk", flat=True))


def give_up() -> None:
    """Mark what broke off again and again as failed; its owner can start it once more."""
    old = ExportJob.objects.filter(state__in=UNFINISHED, created_at__lt=timezone.now() - TRIED)
    for job in old.defer("content"):
        with _held(job.pk) as nobody_works:
            if nobody_works:
                _note(job, state=ExportJob.State.FAILED, error="It broke off again and again.")


@retry_conflicts
@transaction.atomic
def remove_expired() -> int:
    """Delete exports that are old, and those that hold a conversation that was deleted since."""
    give_up()
    finished = ExportJob.objects.exclude(state__in=UNFINISHED)
    removed, _kinds = finished.filter(created_at__lt=timezone.now() - KEPT).delete()
    stale = sql.fetch_all(
        """SELECT j.id FROM mastra_memory_exportjob j WHERE j.state = %s AND EXISTS (
            SELECT FROM jsonb_array_elements_text(j.thread_ids) AS held (id)
            WHERE NOT EXISTS (SELECT FROM mastra_memory_thread t WHERE t.id = held.id))""",
        [ExportJob.State.DONE],
    )
    gone, _kinds = ExportJob.objects.filter(pk__in=[pk for (pk,) in stale]).delete()
    return removed + gone


def file_of(job: ExportJob) -> tuple[bytes, str, str]:
    """The finished file, its name and its type."""
    module, mime_type = FORMATS[ExportJob.Format(job.format)]
    stamp = timezone.localtime(job.created_at).strftime("%Y-%m-%d-%H%M")
    return gzip.decompress(bytes(job.content or b"")), f"threads-{stamp}{module.SUFFIX}", mime_type


def _note(job: ExportJob, **fields: object) -> None:
    ExportJob.objects.filter(pk=job.pk).update(**fields)


def _made(job: ExportJob) -> tuple[bytes, list[str]]:
    """The packed file, and the threads that are in it."""
    buffer = io.BytesIO()
    done: list[str] = []
    with gzip.GzipFile("", "wb", fileobj=buffer, mtime=0) as packed:
        write = _masking(job, packed.write)
        for batch in _batches(job.thread_ids):
            module, _mime_type = FORMATS[ExportJob.Format(job.format)]
            selection = Selection(thread_ids=batch)
            module.export(selection, write if not done else _headless(job, write), _nothing)
            done += batch
            _note(job, done=len(done))
    return buffer.getvalue(), done


def _nothing() -> None:
    """Progress is noted batch by batch: inside a batch's transaction nobody would see it."""


def _batches(thread_ids: Sequence[str]) -> Iterator[list[str]]:
    """The threads that are still there, oldest first."""
    there = Thread.objects.filter(pk__in=thread_ids).order_by("created_at", "pk")
    ids = list(there.values_list("pk", flat=True))
    for at in range(0, len(ids), BATCH):
        yield ids[at : at + BATCH]


def _headless(job: ExportJob, write: Write) -> Write:
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


def _masking(job: ExportJob, write: Callable[[bytes], object]) -> Write:
    """Masks what the owner may not see: in JSON value by value, so that it stays JSON."""
    mask = redaction.get_mask()
    if not job.masked or mask is redaction.keep_text:
        return write
    if job.format == ExportJob.Format.JSONL:
        return lambda data: write(b"".join(_masked_line(line, mask) for line in data.splitlines()))
    return lambda data: write(mask(data.decode()).encode())


def _masked_line(line: bytes, mask: redaction.Mask) -> bytes:
    """Return a line of JSON with its values and the files of a message masked."""
    value = json_text.loads(line)
    masked = redaction.mask_json(value, mask)
    masked_files.mask_held_files(value.get("content"), masked.get("content"), mask)
    return orjson.dumps(masked) + b"\n"
