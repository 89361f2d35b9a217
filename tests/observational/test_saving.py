"""What a save does for observational memory: track messages, count, request work."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mastra_memory import messages
from mastra_memory.db import routing, sql
from mastra_memory.memory import Memory
from mastra_memory.models import MessageObservation, ObservationalRecord
from mastra_memory.observational import generations, status, tracking
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.conftest import Statements
from tests.observational.engine import words
from tests.support.factories import (
    a_message,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
    track,
    unique,
)
from tests.support.waiting import wait_until

KEY = RecordKey.about_thread("t", "r")
ON: dict[str, Any] = {"observationalMemory": True, "semanticRecall": False, "generateTitle": False}
IN_RESOURCE: dict[str, Any] = ON | {"observationalMemory": {"scope": "resource"}}


@pytest.fixture
def thread(db: None) -> StoredThread:
    """Return a thread `t` of `r` without messages."""
    return make_thread("r", "t")


def list_rows() -> dict[str, int | None]:
    """Return the token count of each row, by message."""
    return dict(MessageObservation.objects.values_list("message_id", "token_count"))


@pytest.mark.parametrize("options", [ON, IN_RESOURCE], ids=["thread", "resource"])
def test_save__tracks_messages_in_its_one_statement(
    thread: StoredThread, statements: Statements, options: dict[str, Any]
) -> None:
    batch = some_messages(thread, 3)
    with statements() as sent:
        Memory(options=options).save_messages(batch)
    assert len(sent) == 1
    stored = messages.get_messages(["m0", "m1", "m2"])
    counts = tracking.count_tokens(stored)
    assert list_rows() == dict(zip(("m0", "m1", "m2"), counts, strict=True))
    assert not ObservationalRecord.objects.exists()  # There is no work yet.


def test_save__again_keeps_the_state_and_counts_again(thread: StoredThread) -> None:
    memory = Memory(options=ON)
    memory.save_messages(some_messages(thread, 2))
    chunk = make_chunk(make_record(thread, last_observed_at=moment(9)), activated_at=moment())
    MessageObservation.objects.filter(message_id="m0").update(chunk=chunk)
    memory.save_messages([a_message(thread, "m0", content="a much longer text than before")])
    row = MessageObservation.objects.get(message_id="m0")
    assert row.chunk_id == chunk.id
    assert [row.token_count] == tracking.count_tokens(messages.get_messages(["m0"]))


def test_save__of_an_imported_message_leaves_it_observed(thread: StoredThread) -> None:
    old = save(some_messages(thread, 2))
    make_record(thread, last_observed_at=moment(1), imported_sequence=old[-1].sequence)
    memory = Memory(options=ON)
    memory.save_messages(some_messages(thread, 2))
    assert list_rows() == {}
    memory.save_messages([a_message(thread, "late", at=0)])
    assert list(list_rows()) == ["late"]


def test_save__skips_the_state_of_working_memory(thread: StoredThread) -> None:
    state = {"metadata": {"signal": {"type": "state"}}, "format": 2, "parts": []}
    text = [{"type": "text", "text": "Likes tea"}]
    signal = a_message(thread, "m0", role="signal", content=state | {"parts": text})
    (stored,) = Memory(options=ON).save_messages([signal]).messages
    assert stored.signal == "state" and list_rows() == {}


def test_save__requests_work_with_the_agent_in_its_statement(
    thread: StoredThread, statements: Statements, memory_settings: Callable[..., None]
) -> None:
    sizes = {"messageTokens": 1_000, "bufferTokens": False}
    options = ON | {"observationalMemory": {"observation": sizes}}
    memory_settings(AGENTS={"small": options})
    memory = Memory(agent_id="small")
    with statements() as sent:
        memory.save_messages([a_message(thread, text=words(900))])
    assert len(sent) == 1 and not ObservationalRecord.objects.exists()
    with statements() as sent:
        memory.save_messages([a_message(thread, text=words(200))])
    record = ObservationalRecord.objects.get()
    assert len(sent) == 1
    assert (record.thread_id, record.resource_id, record.scope) == ("t", "r", "thread")
    assert (record.agent_id, record.generation_count, record.config) == ("small", 0, {})
    assert record.due_at is not None
    with statements() as sent:
        memory.save_messages([a_message(thread, text="Hi")])
    again = ObservationalRecord.objects.get()
    assert len(sent) == 1 and again.due_at is not None and again.due_at > record.due_at


def test_save__requests_work_for_messages_without_counts(thread: StoredThread) -> None:
    save([a_message(thread, "earlier")])
    memory = Memory(options=ON)
    memory.save_messages([a_message(thread)])
    record = ObservationalRecord.objects.get()
    assert record.due_at is not None
    ObservationalRecord.objects.update(due_at=None)
    memory.save_messages([a_message(thread)])
    assert ObservationalRecord.objects.get().due_at is None
    MessageObservation.objects.update(token_count=None)
    memory.save_messages([a_message(thread)])
    assert ObservationalRecord.objects.get().due_at is not None


def test_save__uses_the_overrides_of_a_record(thread: StoredThread) -> None:
    memory = Memory(options=ON)
    generations.get_or_create_live(KEY)
    override = {"observation": {"messageTokens": 7_000}}
    memory.update_observational_memory_config(override, thread_id="t")
    chunk = make_chunk(generations.get_live(KEY))
    stored = save([a_message(thread, text=words(3_500)), a_message(thread, text=words(3_400))])
    track(stored)
    MessageObservation.objects.filter(message_id=stored[0].id).update(chunk=chunk)
    memory.save_messages([a_message(thread, text=words(10))])
    assert ObservationalRecord.objects.get().due_at is not None
    ObservationalRecord.objects.update(due_at=None, config={})
    memory.save_messages([a_message(thread, text=words(10))])
    assert ObservationalRecord.objects.get().due_at is None


def test_save__over_many_threads_requests_work_for_each(db: None) -> None:
    made = [make_thread("r", f"t{number}") for number in range(4)]
    sizes = {"observation": {"messageTokens": 500, "bufferTokens": False}}
    memory = Memory(options={"observationalMemory": sizes})
    batch = [a_message(thread, text=words(600)) for thread in made[:3]]
    memory.save_messages([*batch, a_message(made[3], text=words(100))])
    assert set(ObservationalRecord.objects.values_list("thread_id", flat=True)) == {
        "t0",
        "t1",
        "t2",
    }
    memory = Memory(options={"observationalMemory": sizes | {"scope": "resource"}})
    memory.save_messages([a_message(thread, text=words(150)) for thread in made])
    record = ObservationalRecord.objects.get(scope="resource")
    assert record.thread_id is None and record.due_at is not None


@pytest.mark.django_db
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pending=st.lists(st.integers(0, 400), max_size=6),
    chunks=st.lists(st.lists(st.integers(0, 400), max_size=3), max_size=3),
    log_tokens=st.sampled_from([0, 900, 1_500]),
    kind=st.sampled_from(["buffering", "at once", "shared", "resource"]),
    has_record=st.booleans(),
)
@example(pending=[], chunks=[[]], log_tokens=0, kind="buffering", has_record=True)
def test_save__decides_as_the_thresholds_do(
    pending: list[int], chunks: list[list[int]], log_tokens: int, kind: str, has_record: bool
) -> None:
    options = {
        "buffering": {"observation": {"messageTokens": 1_000, "bufferTokens": 250}},
        "at once": {"observation": {"messageTokens": 1_000, "bufferTokens": False}},
        "shared": {
            "observation": {"messageTokens": 1_000, "bufferTokens": False},
            "reflection": {"observationTokens": 2_000},
            "shareTokenBudget": True,
        },
        "resource": {"scope": "resource", "observation": {"messageTokens": 1_000}},
    }[kind]
    memory = Memory(options={"observationalMemory": options})
    resource = unique("r")
    made = [make_thread(resource) for _ in range(2)]
    key = RecordKey.about_resource(resource)
    if kind != "resource":
        made, key = made[:1], RecordKey.about_thread(made[0].id, resource)
    record = None
    if has_record:
        record = generations.get_or_create_live(key)
        ObservationalRecord.objects.filter(pk=record.pk).update(
            observation_token_count=log_tokens, unproductive_reflection_tokens=log_tokens
        )
    rows: list[tuple[Any, int]] = [(None, count) for count in pending]
    for position, counts in enumerate(chunks if record is not None else ()):
        made_chunk = make_chunk(generations.get_live(key), position)
        rows += [(made_chunk, count) for count in counts]
    stored = save([a_message(made[index % len(made)]) for index in range(len(rows))])
    track(stored, key.scope)
    for message, (chunk, count) in zip(stored, rows, strict=True):
        MessageObservation.objects.filter(message_id=message.id).update(
            chunk=chunk, token_count=count
        )
    memory.save_messages([a_message(made[0], text="Hello")])
    assert memory.options.observational_memory is not None
    expected = status.read_status(key, memory.options.observational_memory)
    live = generations.find_live(key)
    is_due = live is not None and live.due_at is not None
    assert is_due == (expected.should_observe or expected.should_buffer)


@pytest.mark.django_db(transaction=True)
def test_save__after_waiting_counts_what_the_other_one_has_saved() -> None:
    thread = make_thread("r", "t")
    sizes = {"observation": {"messageTokens": 1_000, "bufferTokens": False}}
    memory = Memory(options={"observationalMemory": sizes})
    generations.get_or_create_live(KEY)

    def save_second() -> None:
        try:
            memory.save_messages([a_message(thread, text=words(600))])
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with routing.atomic():
            memory.save_messages([a_message(thread, text=words(600))])
            second = pool.submit(save_second)
            wait_until(is_any_blocked)
        second.result()
    assert ObservationalRecord.objects.get().due_at is not None


def is_any_blocked() -> bool:
    """Whether a transaction waits for a lock."""
    count = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    return bool(sql.fetch_all(count)[0][0])
