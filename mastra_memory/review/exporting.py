"""Exports that people ask for in the admin: made at once when small, else in the background."""

import gzip
import io
from collections.abc import Callable, Iterator, Sequence

import orjson
from django.utils import timezone

from mastra_memory import redaction
from mastra_memory.exporters import jsonl, markdown, spreadsheet
from mastra_memory.exporters.output import Write
from mastra_memory.exporters.selection import Selection
from mastra_memory.models import ExportJob, Message, Thread

SMALL = 2_000
"""So many messages are exported while one waits."""
BATCH = 100
"""Threads between two marks of progress."""

FORMATS = {
    ExportJob.Format.JSONL: (jsonl, "application/x-ndjson"),
    ExportJob.Format.MARKDOWN: (markdown, "text/markdown; charset=utf-8"),
    ExportJob.Format.CSV: (spreadsheet, "text/csv; charset=utf-8"),
}


def is_small(job: ExportJob) -> bool:
    """Whether it can be made while a browser waits; looks at no more messages than it must."""
    messages = Message.objects.filter(thread__in=job.thread_ids).values("pk")
    return len(job.thread_ids) <= SMALL and messages[: SMALL + 1].count() <= SMALL


def run(job_id: int) -> None:
    """Make the file. A job that is done stays as it is; one that broke off begins anew."""
    job = ExportJob.objects.filter(pk=job_id).exclude(state=ExportJob.State.DONE).first()
    if job is None:
        return
    _note(job, state=ExportJob.State.RUNNING, done=0, error="")
    try:
        content = _made(job)
    except Exception as error:
        _note(job, state=ExportJob.State.FAILED, error=f"{type(error).__name__}: {error}"[:500])
        raise
    finished = timezone.now()
    _note(job, state=ExportJob.State.DONE, content=content, finished_at=finished)


def list_waiting() -> list[int]:
    """Jobs that nobody has begun: what a lost task would have done."""
    waiting = ExportJob.objects.filter(state=ExportJob.State.WAITING)
    return list(waiting.order_by("pk").values_list("pk", flat=True))


def file_of(job: ExportJob) -> tuple[bytes, str, str]:
    """The finished file, its name and its type."""
    module, mime_type = FORMATS[ExportJob.Format(job.format)]
    stamp = timezone.localtime(job.created_at).strftime("%Y-%m-%d-%H%M")
    return gzip.decompress(bytes(job.content or b"")), f"threads-{stamp}{module.SUFFIX}", mime_type


def _note(job: ExportJob, **fields: object) -> None:
    ExportJob.objects.filter(pk=job.pk).update(**fields)


def _made(job: ExportJob) -> bytes:
    buffer = io.BytesIO()
    done = 0
    with gzip.GzipFile("", "wb", fileobj=buffer, mtime=0) as packed:
        write = _masking(job, packed.write)
        for batch in _batches(job.thread_ids):
            module, _mime_type = FORMATS[ExportJob.Format(job.format)]
            selection = Selection(thread_ids=batch)
            module.export(selection, write if not done else _headless(job, write), _nothing)
            done += len(batch)
            _note(job, done=done)
    return buffer.getvalue()


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
    mask = redaction.mask()
    if not job.masked or mask is redaction.as_is:
        return write
    if job.format == ExportJob.Format.JSONL:
        return lambda data: write(
            b"".join(
                orjson.dumps(redaction.masked_json(orjson.loads(line), mask)) + b"\n"
                for line in data.splitlines()
            )
        )
    return lambda data: write(mask(data.decode()).encode())
