"""Erasing a resource: everything goes, everything else stays, and the report is right."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.utils import timezone

from mastra_memory import signals
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory, maintenance
from mastra_memory.models import (
    Criterion,
    DefaultView,
    ExportJob,
    ModelUsage,
    ObservationalRecord,
    ObservationEvent,
    SavedView,
    Tag,
    Thread,
    WorkingMemory,
)
from mastra_memory.review import erasure, history, notes, reviews, scores, tags, visits
from mastra_memory.review.erasure import PruningRule
from tests.support.factories import make_chunk, make_record, make_thread, save, some_messages

pytestmark = pytest.mark.django_db

SHARED_MODELS = {Tag, Criterion, SavedView, DefaultView}
"""Models whose rows are not about a person."""
COUNTED_APART = {ModelUsage, ExportJob}


@pytest.fixture
def ana() -> User:
    return User.objects.create(username="ana")


def fill_resource(resource_id: str, by: User, *, threads: int = 2) -> list[str]:
    """Store a row of every model that can refer to a resource; return the ids of its threads."""
    options = {
        "semanticRecall": True,
        "workingMemory": {"enabled": True, "scope": "thread"},
        "observationalMemory": True,
    }
    memory = Memory(options=options)
    shared_memory = Memory(options={"workingMemory": {"enabled": True, "scope": "resource"}})
    ids = []
    for _ in range(threads):
        thread = make_thread(resource_id)
        ids.append(thread.id)
        memory.save_messages(some_messages(thread, 3, prefix=thread.id))
        maintenance.embed_pending()
        memory.save_messages(some_messages(thread, 4, prefix=f"{thread.id}-late"))
        for text in ("likes tea", "likes coffee"):
            memory.update_working_memory(thread.id, text)
            shared_memory.update_working_memory(thread.id, f"{resource_id} {text}")
        record = ObservationalRecord.objects.filter(thread=thread.id).first() or make_record(thread)
        make_chunk(record)
        ObservationEvent.objects.create(record=record, operation="observation")
        reviews.update_reviews([thread.id], by=by, status="flagged")
        notes.add_note(thread.id, "call back", by=by)
        tags.add_tag([thread.id], "late", by=by)
        criterion, _new = Criterion.objects.get_or_create(name="Tone")
        scores.save_scores(thread.id, {criterion.pk: "3"}, by=by)
        visits.record_visit(thread.id, by)
        ModelUsage.objects.create(thread_id=thread.id, resource_id=resource_id, model="m")
        ExportJob.objects.create(owner_id=str(by.pk), format="csv", thread_ids=[thread.id, "gone"])
    shared = make_record(resource_id=resource_id)
    make_chunk(shared)
    ModelUsage.objects.create(resource_id=resource_id, model="m")
    return ids


def count_all_rows() -> dict[str, int]:
    """Count the rows of every model of the app, and Django's log."""
    models: Iterator[type[Model]] = apps.get_app_config("mastra_memory").get_models()
    counts = {model.__name__: model._default_manager.count() for model in models}
    return {**counts, "LogEntry": LogEntry.objects.count()}


def test_erasure__covers_every_model() -> None:
    covered = {*erasure.OWNED_BY_THREAD, *erasure.OWNED_BY_RESOURCE}
    models = set(apps.get_app_config("mastra_memory").get_models())
    assert models - covered - SHARED_MODELS - COUNTED_APART == set()


def test_erase_resource__leaves_only_what_others_own(ana: User) -> None:
    fill_resource("bob", ana)
    maintenance.embed_pending()
    without_alice = count_all_rows()
    fill_resource("alice", ana)
    filled = count_all_rows()
    owned = {model.__name__ for model in erasure.OWNED_BY_THREAD}
    expected = owned | {"LogEntry", "ExportJob"}
    assert [name for name in sorted(expected) if filled[name] <= without_alice[name]] == []

    planned = erasure.count_resource("alice")
    assert count_all_rows() == filled
    report = erasure.erase_resource("alice")
    kept = filled["ModelUsage"]
    assert count_all_rows() == {**without_alice, "ModelUsage": kept}
    assert not ModelUsage.objects.filter(resource_id="alice").exists()
    assert ModelUsage.objects.filter(resource_id=None, thread=None).count() == 3
    assert report.counts == planned.counts
    deleted = {name: filled[name] - without_alice[name] for name in owned}
    assert {name: report.counts[name] for name in owned} == deleted
    assert report.counts["export jobs"] == 2
    assert report.counts["admin log entries"] == filled["LogEntry"] - without_alice["LogEntry"]
    assert report.counts["usage records made anonymous"] == 3


def test_erase_resource__a_second_run_finds_nothing(ana: User) -> None:
    fill_resource("alice", ana)
    erasure.erase_resource("alice")
    assert erasure.erase_resource("alice").counts == {}
    assert erasure.count_resource("alice").total == 0


def test_erase_resource__includes_the_log_of_deleted_threads(ana: User) -> None:
    thread = make_thread("alice", title="Secret")
    save(some_messages(thread, 2))
    notes.add_note(thread.id, "call back", by=ana)
    history.log_deletion(ana, Thread.objects.get(pk=thread.id))
    Memory().delete_thread(thread.id)
    history.log_deletion(ana, Thread.objects.get(pk=make_thread("malice").id))
    assert erasure.erase_resource("alice").counts == {"admin log entries": 2}
    assert LogEntry.objects.get().change_message.endswith(" of malice")


def test_erase_resource__keeps_the_log_of_other_models(ana: User) -> None:
    thread = make_thread("alice")
    content_type = ContentType.objects.get_for_model(User)
    LogEntry.objects.create(
        user=ana, content_type=content_type, object_id=thread.id, action_flag=2, object_repr="x"
    )
    erasure.erase_resource("alice")
    assert LogEntry.objects.count() == 1


def test_erase_resource__can_be_interrupted(ana: User) -> None:
    for number in range(erasure.THREADS_PER_BATCH + 2):
        make_thread("alice", f"t{number}")
    make_record(resource_id="alice")

    def stop(threads: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        erasure.erase_resource("alice", after_batch=stop)
    assert Thread.objects.count() == 2
    assert erasure.erase_resource("alice").counts["Thread"] == 2
    assert not ObservationalRecord.objects.exists()


def test_erase_resource__keeps_clones_of_others() -> None:
    thread = make_thread("alice")
    save(some_messages(thread, 2))
    Memory().clone_thread(thread.id, clone_id="copy", resource_id="bob")
    erasure.erase_resource("alice")
    assert Thread.objects.get().pk == "copy"


@pytest.mark.parametrize("resource_id", ["", "x" * 2_000])
def test_erase_resource__refuses_impossible_ids(resource_id: str) -> None:
    make_thread("alice")
    with pytest.raises(InvalidInput):
        erasure.erase_resource(resource_id)
    assert Thread.objects.exists()


def test_erase_resource__sends_a_signal_for_each_thread(
    django_capture_on_commit_callbacks: Any,
) -> None:
    make_thread("alice", "t1")
    received: list[tuple[str, str]] = []

    def receive(sender: Any, thread_id: str, resource_id: str, **more: Any) -> None:
        received.append((thread_id, resource_id))

    signals.thread_deleted.connect(receive)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            erasure.erase_resource("alice")
    finally:
        signals.thread_deleted.disconnect(receive)
    assert received == [("t1", "alice")]


def test_signature__covers_every_value() -> None:
    make_thread("alice")
    report = erasure.erase_resource("alice").to_signed_dict()
    assert erasure.is_signature_valid(report)
    for name in report:
        assert not erasure.is_signature_valid({**report, name: "other"})
    assert not erasure.is_signature_valid({})


def age(thread_id: str, days: float) -> None:
    then = timezone.now() - timedelta(days=days)
    Thread.objects.filter(pk=thread_id).update(updated_at=then)


def days_ago(days: float, **rule: Any) -> PruningRule:
    return PruningRule(inactive_since=timezone.now() - timedelta(days=days), **rule)


def test_prune__deletes_only_old_threads(ana: User) -> None:
    old, new = fill_resource("alice", ana)
    age(old, 31)
    memories = WorkingMemory.objects.filter(thread=None).count()
    [counts] = erasure.prune(days_ago(30))
    assert (counts["Thread"], counts["Message"]) == (1, 7)
    assert Thread.objects.get().pk == new
    assert WorkingMemory.objects.filter(thread=None).count() == memories


def test_prune__follows_every_condition(ana: User) -> None:
    for name, resource, metadata in (
        ("a", "alice", {"plan": "trial", "n": 1}),
        ("b", "bob", {"plan": "trial"}),
        ("c", "alice", {"plan": "paid"}),
        ("d", "alice", {"plan": "trial"}),
    ):
        make_thread(resource, name, metadata=metadata)
        age(name, 10)
    reviews.update_reviews(["a"], by=ana, status="resolved")

    def selected(**rule: Any) -> list[str]:
        return sorted(days_ago(5, **rule).select_threads().values_list("pk", flat=True))

    assert selected() == ["a", "b", "c", "d"]
    assert selected(resource_id="alice", metadata={"plan": "trial"}) == ["a", "d"]
    assert selected(statuses=["resolved"]) == ["a"]
    assert selected(statuses=["new"]) == ["b", "c", "d"]
    assert selected(statuses=["new", "resolved"]) == ["a", "b", "c", "d"]


def test_prune__works_in_batches_up_to_a_limit() -> None:
    for number in range(7):
        make_thread("alice", f"t{number}")
        age(f"t{number}", 100 - number)
    batches = [
        counts["Thread"] for counts in erasure.prune(days_ago(5), max_threads=5, batch_size=2)
    ]
    assert batches == [2, 2, 1]
    assert sorted(Thread.objects.values_list("pk", flat=True)) == ["t5", "t6"]


def test_prune__keeps_a_thread_that_became_active() -> None:
    for name in ("t1", "t2"):
        make_thread("alice", name)
        age(name, 10)
    pruning = erasure.prune(days_ago(5), batch_size=1)
    next(pruning)
    save(some_messages(Memory().get_thread("t2"), 1))
    assert list(pruning) == []
    assert Thread.objects.get().pk == "t2"
