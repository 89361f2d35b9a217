"""Correcting observations, and tracing them to their messages and back."""

from collections.abc import Callable

import pytest

from mastra_memory.exceptions import InvalidInput, StaleData
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, ObservationChunk, ObservationEvent
from mastra_memory.observational import commits, corrections, tracing
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.conftest import Statements
from tests.observational.engine import check_invariants, do_due_work, live, observer, say
from tests.support.factories import make_chunk, make_thread, moment

pytestmark = pytest.mark.django_db
FIRST = """<observations>
Date: Jan 1, 2024
* 🔴 (10:00) Lives in Rome
  * -> near the river
* 🟡 (10:05) Likes tea
</observations>"""
SECOND = "<observations>\nDate: Jan 2, 2024\n* 🔴 (09:00) Has a dog called Rex\n</observations>"


@pytest.fixture
def memory(memory_settings: Callable[..., None]) -> Memory:
    memory_settings(OPTIONS={"observationalMemory": True})
    return Memory()


@pytest.fixture
def thread(memory: Memory) -> StoredThread:
    """A thread with one observed message."""
    made = make_thread()
    say(memory, made, 10, message_id="m1")
    with observer(FIRST):
        memory.observe(thread_id=made.id)
    return made


def observe_more(memory: Memory, thread: StoredThread) -> None:
    say(memory, thread, 10, message_id="m2")
    with observer(SECOND):
        memory.observe(thread_id=thread.id)


def test_list__names_each_observation_and_its_messages(
    memory: Memory, thread: StoredThread
) -> None:
    observe_more(memory, thread)
    entries = memory.list_observations(thread_id=thread.id)
    assert [entry.id for entry in entries] == ["0.1", "0.2", "0.3", "0.8"]
    assert [entry.item.text for entry in entries] == [
        "Lives in Rome", "near the river", "Likes tea", "Has a dog called Rex",
    ]  # fmt: skip
    assert [entry.message_ids for entry in entries] == [("m1",)] * 3 + [("m2",)]
    assert all(entry.is_exact for entry in entries)
    found = memory.list_messages_of_observation("0.8", thread_id=thread.id)
    assert [message.id for message in found] == ["m2"]


def test_edit__opens_a_generation_of_that_person(memory: Memory, thread: StoredThread) -> None:
    record = memory.edit_observation("0.1", "Lives in Paris", thread_id=thread.id, user_name="ann")
    assert (record.generation_count, record.origin_type, record.created_by_name) == (
        1, "edit", "ann",
    )  # fmt: skip
    assert "* 🔴 (10:00) Lives in Paris\n  * -> near" in record.active_observations
    event = ObservationEvent.objects.get(operation="edit")
    assert (event.user_name, event.data["action"]) == ("ann", "edit")
    assert (event.data["before"], event.data["after"]) == ("Lives in Rome", "Lives in Paris")
    (entry, *_) = memory.list_observations(thread_id=thread.id)
    assert entry.id == "1.1"
    check_invariants()


def test_edit__is_refused_if_the_observations_have_changed(
    memory: Memory, thread: StoredThread
) -> None:
    memory.delete_observation("0.3", thread_id=thread.id)
    for address in ("0.1", "1.3", "1.0", "5.1"):
        with pytest.raises(StaleData):
            memory.edit_observation(address, "x", thread_id=thread.id)
    with pytest.raises(InvalidInput, match="id of an observation"):
        memory.edit_observation("x", "x", thread_id=thread.id)
    with pytest.raises(InvalidInput, match="text must not be empty"):
        memory.edit_observation("1.1", " ", thread_id=thread.id)
    assert live(thread).generation_count == 1


def test_delete__takes_nested_ones_along(memory: Memory, thread: StoredThread) -> None:
    record = memory.delete_observation("0.1", thread_id=thread.id)
    assert record.active_observations == "Date: Jan 1, 2024\n* 🟡 (10:05) Likes tea"
    check_invariants()


def test_pin__is_kept_by_the_reflector(memory: Memory, thread: StoredThread) -> None:
    memory.pin_observation("0.3", thread_id=thread.id)
    assert live(thread).pinned == ["Likes tea"]
    assert [e.is_pinned for e in memory.list_observations(thread_id=thread.id)] == [
        False, False, True,
    ]  # fmt: skip
    again = memory.pin_observation("1.3", thread_id=thread.id)
    assert again.generation_count == 1
    with observer("<observations>\n* 🔴 Somebody\n</observations>"):
        memory.reflect(thread_id=thread.id)
    record = live(thread)
    assert "* 🔴 Somebody" in record.active_observations
    assert "* 🟡 (10:05) Likes tea" in record.active_observations
    assert record.pinned == ["Likes tea"]
    pinned = next(e for e in memory.list_observations(thread_id=thread.id) if e.is_pinned)
    assert memory.pin_observation(pinned.id, pinned=False, thread_id=thread.id).pinned == []


def test_pin__follows_an_edit_and_ends_with_a_deletion(
    memory: Memory, thread: StoredThread
) -> None:
    memory.pin_observation("0.3", thread_id=thread.id)
    assert memory.edit_observation("1.3", "Likes coffee", thread_id=thread.id).pinned == [
        "Likes coffee"
    ]
    assert memory.delete_observation("2.3", thread_id=thread.id).pinned == []


def test_restore__undoes_and_loses_nothing(memory: Memory, thread: StoredThread) -> None:
    before = live(thread).active_observations
    memory.delete_observation("0.3", thread_id=thread.id)
    observe_more(memory, thread)
    record = memory.restore_observations(0, thread_id=thread.id, user_name="ann")
    assert record.generation_count == 2 and record.origin_type == "edit"
    assert record.active_observations.startswith(before)
    assert record.active_observations.endswith("* 🔴 (09:00) Has a dog called Rex")
    for number in (2, 3, 99):
        with pytest.raises(InvalidInput, match="earlier generation"):
            memory.restore_observations(number, thread_id=thread.id)
    check_invariants()


def test_correction__keeps_chunks_and_what_is_appended_meanwhile(
    memory: Memory, thread: StoredThread, memory_settings: Callable[..., None]
) -> None:
    small = {"observation": {"messageTokens": 1_000, "bufferTokens": 100}}
    memory_settings(OPTIONS={"observationalMemory": small})
    say(Memory(), thread, 200)
    with observer(SECOND):
        do_due_work()
    record = memory.edit_observation("0.1", "Lives in Paris", thread_id=thread.id)
    assert [chunk.record_id for chunk in ObservationChunk.objects.buffered()] == [record.pk]
    assert commits.activate_chunks(RecordKey.of_record(record), 1) is not None
    text = live(thread).active_observations
    assert "Lives in Paris" in text and text.endswith("Has a dog called Rex")
    check_invariants()


def test_trace__of_messages_and_of_changed_observations(
    memory: Memory, thread: StoredThread
) -> None:
    trace = memory.trace_message("m1", thread_id=thread.id)
    assert trace.state == "observed" and trace.chunk is not None
    assert [item.text for item in trace.items] == ["Lives in Rome", "near the river", "Likes tea"]
    pending = say(memory, thread, 10)
    assert memory.trace_message(pending, thread_id=thread.id).state == "pending"
    assert memory.trace_message("unknown", thread_id=thread.id).state == ""
    memory.edit_observation("0.1", "Lives in Rome near the Tiber", thread_id=thread.id)
    (entry, *_) = memory.list_observations(thread_id=thread.id)
    assert entry.message_ids == ("m1",) and not entry.is_exact


def test_history__shows_generations_page_by_page(memory: Memory, thread: StoredThread) -> None:
    memory.delete_observation("0.3", thread_id=thread.id)
    memory.restore_observations(0, thread_id=thread.id)
    page = memory.list_observational_generations(thread_id=thread.id, per_page=2)
    assert [record.generation_count for record in page.generations] == [2, 1]
    assert (page.total, page.has_more) == (3, True)
    last = memory.list_observational_generations(thread_id=thread.id, page=1, per_page=2)
    assert [record.generation_count for record in last.generations] == [0] and not last.has_more
    assert ObservationalRecord.objects.live().count() == 1


def test_sources__cost_the_same_for_any_number_of_chunks(
    memory: Memory, thread: StoredThread, statements: Statements
) -> None:
    key = RecordKey.about_thread(thread.id, thread.resource_id)
    record = live(thread)
    texts = [f"* 🔴 (10:00) Number {n} lives in city{n}" for n in range(tracing.MAX_CHUNKS + 20)]
    for number, text in enumerate(texts, 1):
        make_chunk(
            record,
            number,
            observations=text,
            message_ids=[f"x{number}"],
            activated_at=moment(number),
        )
    log = "\n".join([*texts[-2:], "* 🔴 (10:00) city7 and city500 are where Number lives"])
    ObservationalRecord.objects.update(active_observations=log)
    with statements() as sent:
        entries = corrections.list_entries(key)
    assert len(sent) <= 4
    assert len(tracing.list_activated_chunks(key, limit=tracing.MAX_CHUNKS)) == tracing.MAX_CHUNKS
    assert [entry.message_ids for entry in entries] == [("x519",), ("x520",), ("x501",)]
    assert [entry.is_exact for entry in entries] == [True, True, False]
    assert corrections.get_entry(key, entries[2].id) == entries[2]
