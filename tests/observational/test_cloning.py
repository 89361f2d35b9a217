"""What the clone of a thread gets of its observations."""

from typing import Any

import pytest

from mastra_memory.memory import Memory
from mastra_memory.models import MessageObservation, ObservationalRecord, ObservationChunk
from mastra_memory.observational import generations, tracking
from mastra_memory.observational.cloning import map_range
from mastra_memory.observational.groups import format_range, wrap_in_group
from mastra_memory.observational.keys import RecordKey
from mastra_memory.threads import cloning
from mastra_memory.types import StoredMessage, StoredThread
from tests.support.factories import (
    a_message,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    track,
)

ODD_IDS = ["m:0", 'm"1', "m,2", "m%3A3", "m>4"]


@pytest.mark.parametrize(
    ("message_range", "mapped"),
    [
        ("m:0:plain", "A:E"),
        ('m"1:m,2', "B:C"),
        ("m%3A0:plain", "A:E"),
        ("m%3A3:m:0", "D:A"),
        ("m%253A3:m:0", "D:A"),
        ("plain:m:0,m,2:plain", "E:A,C:E"),
        ("plain:gone,plain:plain", "plain:gone,E:E"),
        ("gone", "gone"),
        ("", ""),
    ],
)
def test_map_range__ids_may_contain_separators(message_range: str, mapped: str) -> None:
    new_ids = dict(zip([*ODD_IDS[:4], "plain"], "ABCDE", strict=True))
    assert map_range(message_range, new_ids) == mapped


@pytest.fixture
def thread(db: None) -> StoredThread:
    """Return a thread `t` with messages that have odd ids; all but the last one are tracked."""
    made = make_thread("r", "t")
    stored = store(made)
    for scope in ("thread", "resource"):
        track(stored[:4], scope=scope)
    return made


def store(thread: StoredThread) -> list[StoredMessage]:
    """Save the messages, one second apart."""
    return save([a_message(thread, name, at=at) for at, name in enumerate(ODD_IDS)])


def observe(record: ObservationalRecord, chunks: dict[str, Any]) -> None:
    """Assign messages to chunks of the record."""
    for message_id, chunk in chunks.items():
        rows = MessageObservation.objects.filter(scope=record.scope, message_id=message_id)
        assert rows.update(chunk=chunk) == 1


def list_states(thread_id: str, scope: str) -> list[tuple[str, str | None]]:
    """Return the messages of a thread with the text of their chunks, oldest first."""
    rows = MessageObservation.objects.filter(thread_id=thread_id, scope=scope)
    ordered = rows.order_by("message__created_at", "message__sequence")
    return list(ordered.values_list("message_id", "chunk__observations"))


def test_clone__copies_chunks_of_all_generations_and_the_state_of_each_message(
    thread: StoredThread,
) -> None:
    messages = [message for message in tracking.list_unobserved(RecordKey.about_thread("t", "r"))]
    group = wrap_in_group("* A", format_range(messages), group_id="g")
    old = make_record(thread)
    head = make_record(
        thread, generation_count=1, active_observations=group, last_observed_at=moment(2)
    )
    observe(
        head,
        {
            "m:0": make_chunk(
                old, activated_at=moment(), observations="old", thread_id="t", range="m%3A0:m:0"
            ),
            "m,2": make_chunk(head, observations="buffered", message_ids=["m,2", "gone"]),
        },
    )
    result = cloning.clone_thread("t")
    ids = result.message_id_map
    clone_id = result.thread.id
    copy = generations.get_live(RecordKey.about_thread(clone_id, "r"))
    assert f'range="{ids["m:0"]}:{ids["m%3A3"]}"' in copy.active_observations
    expected = [("m:0", "old"), ('m"1', None), ("m,2", "buffered"), ("m%3A3", None)]
    assert list_states(clone_id, "thread") == [(ids[name], text) for name, text in expected]
    assert list_states("t", "thread") == expected
    first, second = ObservationChunk.objects.filter(record=copy).order_by("position")
    assert (first.position, first.range, first.thread_id) == (
        0,
        f"{ids['m:0']}:{ids['m:0']}",
        clone_id,
    )
    assert first.activated_at == moment() and second.message_ids == [ids["m,2"]]
    assert [chunk.observations for chunk in copy.buffered_chunks] == ["buffered"]
    tracking.track_missing(RecordKey.about_thread(clone_id, "r"))
    unobserved = tracking.list_unobserved(RecordKey.about_thread(clone_id, "r"))
    assert [message.id for message in unobserved] == [ids[name] for name in ODD_IDS[1:]]


def test_clone__shares_the_record_of_its_resource(thread: StoredThread) -> None:
    shared = make_record(resource_id="r")
    observe(shared, {"m:0": make_chunk(shared, activated_at=moment(), observations="A")})
    result = cloning.clone_thread("t")
    assert ObservationalRecord.objects.count() == 1
    states = list_states(result.thread.id, "resource")
    assert [text for _, text in states] == ["A", None, None, None]


@pytest.mark.parametrize("has_record", [True, False])
def test_clone__into_another_resource(thread: StoredThread, has_record: bool) -> None:
    shared = make_record(resource_id="r", active_observations='<thread id="t">\n* A\n</thread>')
    observe(
        shared,
        {"m:0": make_chunk(shared, activated_at=moment(), observations="A", thread_id="t")},
    )
    if has_record:
        make_record(resource_id="s")
    result = cloning.clone_thread("t", resource_id="s")
    copy = generations.get_live(RecordKey.about_resource("s"))
    tag = f'<thread id="{result.thread.id}">'
    assert (tag in copy.active_observations) is not has_record
    texts = [text for _, text in list_states(result.thread.id, "resource")]
    assert texts == [None if has_record else "A", None, None, None]


def test_clone__an_observed_message_that_is_saved_again_stays_observed(
    thread: StoredThread,
) -> None:
    make_record(thread, last_observed_at=moment(9))
    MessageObservation.objects.all().delete()
    result = cloning.clone_thread("t")
    ids = list(result.message_id_map.values())
    clone = result.thread
    again = [a_message(clone, message_id) for message_id in ids]
    Memory(options={"observationalMemory": True}).save_messages(again)
    assert list_states(clone.id, "thread") == []
