"""Erase what is stored about a resource, and prune old threads.

Both delete threads in small batches, each in a transaction of its own. They can be interrupted at
any time and started again; a second run finds nothing left.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.core import signing
from django.db.models import Model, Q, QuerySet
from django.utils.crypto import constant_time_compare

from mastra_memory import signals, threads
from mastra_memory.db import identifiers, routing, times
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import (
    EmbeddingRequest,
    ExportJob,
    Message,
    MessageEmbedding,
    MessageObservation,
    ModelUsage,
    ObservationalRecord,
    ObservationChunk,
    ObservationEvent,
    Review,
    ReviewNote,
    Score,
    Thread,
    ThreadChange,
    ThreadTag,
    Visit,
    WorkingMemory,
    WorkingMemoryRevision,
)

THREADS_PER_BATCH = 50
"""Threads that are deleted in one transaction."""
SIGNATURE_SALT = "mastra_memory.erasure"

OWNED_BY_THREAD: Mapping[type[Model], str] = {
    Thread: "pk",
    Message: "thread",
    MessageEmbedding: "thread_id",
    EmbeddingRequest: "thread_id",
    MessageObservation: "thread_id",
    WorkingMemory: "thread",
    WorkingMemoryRevision: "working_memory__thread",
    ObservationalRecord: "thread",
    ObservationChunk: "record__thread",
    ObservationEvent: "record__thread",
    Review: "thread",
    ReviewNote: "thread",
    ThreadTag: "thread",
    Score: "thread",
    Visit: "thread",
    ThreadChange: "thread",
}
"""The models whose rows are deleted with a thread, and the path from each to the thread."""

OWNED_BY_RESOURCE: Mapping[type[Model], str] = {
    WorkingMemory: "resource_id",
    WorkingMemoryRevision: "working_memory__resource_id",
    ObservationalRecord: "resource_id",
    ObservationChunk: "record__resource_id",
    ObservationEvent: "record__resource_id",
}
"""The models with rows of the resource itself, and the path from each to the resource."""


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What an erasure deleted, or would delete."""

    resource_id: str
    started_at: datetime
    finished_at: datetime
    is_dry_run: bool
    counts: Mapping[str, int] = field(default_factory=dict)
    """Deleted rows by model. "usage records made anonymous" are records of model calls, which keep
    their tokens and cost."""

    @property
    def total(self) -> int:
        """Return the sum of all counts."""
        return sum(self.counts.values())

    def to_signed_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, with a signature made with `SECRET_KEY`."""
        values = {
            "resourceId": self.resource_id,
            "startedAt": self.started_at.isoformat(),
            "finishedAt": self.finished_at.isoformat(),
            "dryRun": self.is_dry_run,
            "counts": dict(self.counts),
            "total": self.total,
        }
        return {**values, "signature": _sign(values)}


def is_signature_valid(report: Mapping[str, Any]) -> bool:
    """Return True if this installation signed the report and it has not been changed since."""
    values = {name: value for name, value in report.items() if name != "signature"}
    return constant_time_compare(_sign(values), str(report.get("signature")))


def _sign(values: Mapping[str, Any]) -> str:
    canonical = json.dumps(values, sort_keys=True)
    return signing.Signer(salt=SIGNATURE_SALT).signature(canonical)


def count_resource(resource_id: str) -> ErasureReport:
    """Return what `erase_resource` would delete now, without deleting anything."""
    resource_id = identifiers.check_id(resource_id, "resourceId")
    started_at = times.now()
    thread_ids = list(_threads_of(resource_id).values_list("pk", flat=True))
    counts = Counter[str]()
    for start in range(0, len(thread_ids), THREADS_PER_BATCH):
        counts += _count_thread_rows(thread_ids[start : start + THREADS_PER_BATCH])
    counts += _count_resource_rows(resource_id)
    counts["export jobs"] = _export_jobs_with(thread_ids).count()
    counts["admin log entries"] = sum(
        entries.count() for entries in _log_entries(resource_id, thread_ids)
    )
    return ErasureReport(resource_id, started_at, times.now(), True, _drop_zeros(counts))


def erase_resource(
    resource_id: str, *, after_batch: Callable[[int], None] = lambda threads: None
) -> ErasureReport:
    """Delete everything that is stored about a resource, and report what was deleted.

    That includes what was written about its threads: reviews, notes, scores, the history of
    changes, the log of Django's admin, and finished exports. Records of model calls remain, but
    without thread and resource. Copies that were cloned into another resource are not touched:
    they belong to that resource.

    Args:
        resource_id: The owner of the threads.
        after_batch: Called with the number of threads that were deleted, after each batch.

    Raises:
        InvalidInput: The id is empty or too long.
    """
    resource_id = identifiers.check_id(resource_id, "resourceId")
    started_at = times.now()
    counts = Counter[str]()
    while thread_ids := _list_batch(_threads_of(resource_id)):
        counts += _delete_batch(thread_ids)
        after_batch(len(thread_ids))
    counts += _delete_resource_rows(resource_id)
    return ErasureReport(resource_id, started_at, times.now(), False, _drop_zeros(counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningRule:
    """Which threads are old enough to be deleted."""

    inactive_since: datetime
    """Delete threads without activity since then."""
    resource_id: str | None = None
    statuses: Sequence[str] = ()
    """Only threads whose review has one of these statuses; a thread without a review is new."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Only threads whose metadata contains these keys and values."""

    def select_threads(self) -> QuerySet[Thread]:
        """Return the threads that the rule covers, the longest inactive first."""
        matching = Thread.objects.filter(updated_at__lt=self.inactive_since)
        if self.resource_id is not None:
            matching = matching.filter(resource_id=self.resource_id)
        if self.statuses:
            has_status = Q(review__status__in=self.statuses)
            if Review.Status.NEW in self.statuses:
                has_status |= Q(review__isnull=True)
            matching = matching.filter(has_status)
        if self.metadata:
            matching = matching.filter(metadata__contains=self.metadata)
        return matching.order_by("updated_at", "pk")


def prune(
    rule: PruningRule, *, max_threads: int | None = None, batch_size: int = THREADS_PER_BATCH
) -> Iterator[Counter[str]]:
    """Delete the threads that the rule covers, and yield what each batch deleted.

    Args:
        rule: Which threads to delete.
        max_threads: Stop after this many threads; None for no limit.
        batch_size: Threads that are deleted in one transaction.
    """
    remaining = max_threads
    while remaining is None or remaining > 0:
        size = batch_size if remaining is None else min(batch_size, remaining)
        thread_ids = _list_batch(rule.select_threads(), size)
        if not thread_ids:
            return
        yield _delete_batch(thread_ids, rule)
        if remaining is not None:
            remaining -= len(thread_ids)


def _threads_of(resource_id: str) -> QuerySet[Thread]:
    return Thread.objects.filter(resource_id=resource_id).order_by("pk")


def _list_batch(matching: QuerySet[Thread], size: int = THREADS_PER_BATCH) -> list[str]:
    return list(matching.values_list("pk", flat=True)[:size])


@retry_conflicts
def _delete_batch(thread_ids: Sequence[str], rule: PruningRule | None = None) -> Counter[str]:
    """Delete threads with everything that refers to them, and count the deleted rows.

    With a rule, threads that it no longer covers are kept: somebody may have written to them since
    they were listed.
    """
    # Django's log may be stored in another database, so it cannot be part of the transaction. It
    # goes first: an interrupted run finds the threads again, but could not find their log.
    with routing.atomic():
        locked = Thread.objects.select_for_update(no_key=True).filter(pk__in=thread_ids)
        if rule is not None:
            locked = locked.filter(pk__in=rule.select_threads().order_by().values("pk"))
        owners = dict(locked.order_by("pk").values_list("pk", "resource_id"))
        counts = _count_thread_rows(list(owners))
        counts["admin log entries"] = _delete_log_entries(None, list(owners))
        counts["export jobs"], _by_model = _export_jobs_with(list(owners)).delete()
        for thread_id, resource_id in owners.items():
            threads.delete_thread(thread_id)
            signals.send(signals.thread_deleted, thread_id=thread_id, resource_id=resource_id)
    return counts


@retry_conflicts
@routing.atomic
def _delete_resource_rows(resource_id: str) -> Counter[str]:
    counts = _count_resource_rows(resource_id)
    counts["admin log entries"] = _delete_log_entries(resource_id, [])
    WorkingMemory.objects.filter(resource_id=resource_id, thread__isnull=True).delete()
    ObservationalRecord.objects.filter(resource_id=resource_id, thread__isnull=True).delete()
    ModelUsage.objects.filter(resource_id=resource_id).update(thread=None, resource_id=None)
    return counts


def _count_thread_rows(thread_ids: Sequence[str]) -> Counter[str]:
    counts = Counter[str]()
    for model, path in OWNED_BY_THREAD.items():
        rows = model._default_manager.filter(**{f"{path}__in": thread_ids})
        counts[_name_rows(model)] = rows.order_by().count()
    usage = ModelUsage.objects.filter(thread__in=thread_ids)
    counts["usage records made anonymous"] = usage.count()
    return counts


def _count_resource_rows(resource_id: str) -> Counter[str]:
    counts = Counter[str]()
    for model, path in OWNED_BY_RESOURCE.items():
        owner = path.removesuffix("resource_id")
        without_thread = {path: resource_id, f"{owner}thread__isnull": True}
        rows = model._default_manager.filter(**without_thread)
        counts[_name_rows(model)] = rows.order_by().count()
    usage = ModelUsage.objects.filter(resource_id=resource_id, thread__isnull=True)
    counts["usage records made anonymous"] = usage.count()
    return counts


def _name_rows(model: type[Model]) -> str:
    # Not `verbose_name_plural`: a report must read the same in every language.
    return model._meta.object_name or ""


def _drop_zeros(counts: Counter[str]) -> dict[str, int]:
    return {name: number for name, number in sorted(counts.items()) if number}


def _export_jobs_with(thread_ids: Sequence[str]) -> QuerySet[ExportJob]:
    """Return the exports that contain one of the threads."""
    return ExportJob.objects.filter(thread_ids__has_any_keys=list(thread_ids))


def _log_entries(resource_id: str | None, thread_ids: Sequence[str]) -> list[QuerySet[Any]]:
    """Return the entries of Django's admin log about the threads, or about the resource's rows.

    With a resource, also those about threads that were deleted earlier: the entry of the deletion
    names the resource.
    """
    if not apps.is_installed("django.contrib.admin"):
        return []
    log_entry: Any = apps.get_model("admin", "LogEntry")
    about_threads = log_entry.objects.filter(content_type=ContentType.objects.get_for_model(Thread))
    found = [about_threads.filter(object_id__in=thread_ids)] if thread_ids else []
    if resource_id is None:
        records = ObservationalRecord.objects.filter(thread__in=thread_ids)
        memories = WorkingMemory.objects.filter(thread__in=thread_ids)
    else:
        records = ObservationalRecord.objects.filter(resource_id=resource_id)
        memories = WorkingMemory.objects.filter(resource_id=resource_id)
        deletions = about_threads.filter(
            action_flag=3, change_message__endswith=f" messages of {resource_id}"
        )
        deleted = list(deletions.values_list("object_id", flat=True))
        if deleted:
            found.append(about_threads.filter(object_id__in=deleted))
    for rows in (records, memories):
        keys = [str(pk) for pk in rows.values_list("pk", flat=True)]
        if keys:
            content_type = ContentType.objects.get_for_model(rows.model)
            found.append(log_entry.objects.filter(content_type=content_type, object_id__in=keys))
    return found


def _delete_log_entries(resource_id: str | None, thread_ids: Sequence[str]) -> int:
    return sum(entries.delete()[0] for entries in _log_entries(resource_id, thread_ids))


def check_rule(rule: PruningRule) -> None:
    """Check the rule.

    Raises:
        InvalidInput: A status is unknown, or the time lies in the future.
    """
    unknown = set(rule.statuses) - set(Review.Status.values)
    if unknown:
        names = ", ".join(Review.Status.values)
        raise InvalidInput(f"unknown status {min(unknown)}; the statuses are: {names}")
    if rule.inactive_since > times.now():
        raise InvalidInput("the time lies in the future: this would delete every thread")
