"""Records of observational memory: head, history, and what a copy makes of them."""

from typing import Any

import pytest

from mastra_memory import threads
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import ObservationalRecord, ObservationChunk, Scope
from mastra_memory.observational import generations
from mastra_memory.threads import cloning
from mastra_memory.types import StoredThread
from tests.conftest import Statements
from tests.support.factories import (
    held_lease,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(db: None) -> StoredThread:
    """A thread `t` of m0 … m4."""
    made = make_thread("r", "t")
    save(some_messages(made, 5))
    return made


def head_of(thread: StoredThread) -> ObservationalRecord | None:
    """Return the live record of a thread."""
    return generations.find_live_in_scope(
        Scope.THREAD, thread_id=thread.id, resource_id=thread.resource_id
    )


def test_find_head__the_highest_generation_with_its_chunks_in_order(thread: StoredThread) -> None:
    assert head_of(thread) is None
    records = [make_record(thread, generation_count=number) for number in (2, 0, 1)]
    make_chunk(records[0], 1, id="b"), make_chunk(records[0], 0, id="a")
    head = head_of(thread)
    assert head is not None and head.pk == records[0].pk
    assert [chunk.pk for chunk in head.chunks.all()] == ["a", "b"]


def test_find_head__of_a_resource(thread: StoredThread) -> None:
    make_record(thread), make_record(resource_id="s")
    record = make_record(resource_id="r")
    head = generations.find_live_in_scope(Scope.RESOURCE, thread_id="t", resource_id="r")
    assert head is not None and head.pk == record.pk
    assert generations.find_live_in_scope(Scope.THREAD, thread_id=None, resource_id="r") is None


def test_list_history__two_statements_for_any_number(
    thread: StoredThread, statements: Statements
) -> None:
    for number in range(6):
        made = moment(number)
        make_chunk(make_record(thread, generation_count=number, created_at=made))
    about: dict[str, Any] = {"thread_id": thread.id, "resource_id": None}
    with statements() as sent:
        found = generations.list_history(Scope.THREAD, **about, start=moment(1), end=moment(4))
        assert [record.chunks.all()[0].position for record in found] == [0] * 4
    assert [record.generation_count for record in found] == [4, 3, 2, 1]
    assert len(sent) == 2
    page = generations.list_history(Scope.THREAD, **about, limit=2, offset=3)
    assert [record.generation_count for record in page] == [2, 1]


def test_wait_for_buffering__gives_up_after_its_time(thread: StoredThread) -> None:
    make_record(thread, **held_lease("buffering reflection"))
    head = generations.wait_for_buffering(
        Scope.THREAD, thread_id=thread.id, resource_id=None, timeout=0.05
    )
    assert head is not None and head.is_buffering_reflection


def test_override_config__merges_into_the_head(thread: StoredThread) -> None:
    about = {"thread_id": thread.id, "resource_id": None}
    with pytest.raises(InvalidInput):
        generations.override_config(Scope.THREAD, {"a": 1}, **about)
    make_record(thread, config={"kept": 1})
    generations.override_config(Scope.THREAD, {"observation": {"messageTokens": 5}}, **about)
    head = generations.override_config(Scope.THREAD, {"observation": {"x": 1}}, **about)
    assert head.config == {
        "kept": 1,
        "_overrides": {"observation": {"messageTokens": 5, "x": 1}},
    }


def test_clone__the_head_of_the_thread_is_copied_without_its_history(thread: StoredThread) -> None:
    make_record(thread)
    kept: dict[str, Any] = {
        "last_observed_at": moment(3),
        "total_tokens_observed": 7,
        "config": {"k": 1},
    }
    held = held_lease("observing") | held_lease("reflecting")
    source = make_record(
        thread, generation_count=3, origin_type="reflection", metadata={"m": 1}, **kept, **held
    )
    clone = cloning.clone_thread(thread.id).thread
    copied = ObservationalRecord.objects.get(thread_id=clone.id)
    assert copied.pk != source.pk and copied.generation_count == 3
    assert (copied.origin_type, copied.metadata) == ("reflection", {"m": 1})
    assert {name: getattr(copied, name) for name in kept} == kept
    assert not (copied.is_observing or copied.is_reflecting)
    assert not (copied.is_buffering_observation or copied.is_buffering_reflection)
    assert copied.created_at > source.created_at


def test_clone__ids_are_mapped_and_unmapped_ones_dropped(thread: StoredThread) -> None:
    notes = 'range="m0:m1" range="m0:zzz" <thread id="t">'
    record = make_record(
        thread,
        observed_message_ids=["m0", "m1", "gone"],
        active_observations=notes,
        buffered_reflection=notes,
    )
    make_chunk(record, 0, id="a", message_ids=["m3", "gone"], observations=notes)
    make_chunk(record, 1, id="b", message_ids=["gone"], hints={"currentTask": "x"})
    result = cloning.clone_thread(thread.id)
    new = result.message_id_map
    copied = ObservationalRecord.objects.get(thread_id=result.thread.id)
    expected = f'range="{new["m0"]}:{new["m1"]}" range="m0:zzz" <thread id="t">'
    assert copied.observed_message_ids == [new["m0"], new["m1"]]
    assert copied.active_observations == copied.buffered_reflection == expected
    first, second = ObservationChunk.objects.filter(record=copied).order_by("position")
    assert (first.message_ids, first.observations) == ([new["m3"]], expected)
    assert (second.message_ids, second.hints) == ([], {"currentTask": "x"})
    assert {first.pk, second.pk}.isdisjoint({"a", "b"})


def test_clone__absent_ids_stay_absent(thread: StoredThread) -> None:
    make_record(thread)
    clone = cloning.clone_thread(thread.id).thread
    assert ObservationalRecord.objects.get(thread_id=clone.id).observed_message_ids is None


def test_clone__to_another_resource_renames_the_threads_tag_only(thread: StoredThread) -> None:
    make_record(thread, active_observations='<thread id="t"> and <thread id="other">')
    clone = cloning.clone_thread(thread.id, resource_id="s").thread
    copied = ObservationalRecord.objects.get(resource_id="s")
    assert copied.thread_id == clone.id
    assert copied.active_observations == f'<thread id="{clone.id}"> and <thread id="other">'


def test_clone__a_resources_record_is_shared_within_and_copied_abroad(
    thread: StoredThread,
) -> None:
    make_record(resource_id="r", generation_count=2, active_observations='<thread id="t">')
    cloning.clone_thread(thread.id)
    assert ObservationalRecord.objects.count() == 1
    clone = cloning.clone_thread(thread.id, resource_id="s").thread
    copied = ObservationalRecord.objects.get(resource_id="s")
    assert (copied.scope, copied.thread_id, copied.generation_count) == ("resource", None, 2)
    assert copied.active_observations == f'<thread id="{clone.id}">'
    cloning.clone_thread(thread.id, resource_id="s")
    assert ObservationalRecord.objects.filter(resource_id="s").count() == 1


def test_clone__the_threads_record_wins_over_the_resources(thread: StoredThread) -> None:
    make_record(resource_id="r", active_observations="resource")
    make_record(thread, active_observations="thread")
    cloning.clone_thread(thread.id, resource_id="s")
    copied = ObservationalRecord.objects.get(resource_id="s")
    assert (copied.scope, copied.active_observations) == ("thread", "thread")


def test_transfer__takes_the_threads_records_along_and_no_other(thread: StoredThread) -> None:
    record, shared = make_record(thread), make_record(resource_id="r")
    threads.transfer_thread(thread.id, "s")
    owners = dict(ObservationalRecord.objects.values_list("pk", "resource_id"))
    assert owners == {record.pk: "s", shared.pk: "r"}


def test_delete__takes_the_threads_records_and_leaves_the_resources(thread: StoredThread) -> None:
    make_chunk(make_record(thread)), make_record(resource_id="r")
    threads.delete_thread(thread.id)
    assert [record.scope for record in ObservationalRecord.objects.all()] == ["resource"]
    assert not ObservationChunk.objects.exists()
