"""Cloning threads, and finding the source and the clones of a thread."""

from typing import Any

import pytest

from mastra_memory import messages, threads, working_memory
from mastra_memory.exceptions import Conflict, InvalidInput, ThreadNotFound
from mastra_memory.models import Message, Thread, WorkingMemoryRevision
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.threads import cloning
from mastra_memory.types import MessageSelection, StoredThread
from tests.conftest import Statements
from tests.support.concurrency import concurrently
from tests.support.factories import (
    a_message,
    fill,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
    text_content,
)

pytestmark = pytest.mark.django_db
BY_THREAD = WorkingMemoryOptions(enabled=True, scope="thread")
BY_RESOURCE = WorkingMemoryOptions(enabled=True)


@pytest.fixture
def source(db: None) -> StoredThread:
    """Return a thread of five messages."""
    thread = make_thread("r", "source", title="Trip")
    save(some_messages(thread, 5))
    return thread


def list_rows(thread_id: str) -> list[dict[str, Any]]:
    """Return the columns that a clone has in common with its source, in order."""
    columns = ("role", "type", "signal", "content", "text", "search", "created_at", "edited_at")
    rows = Message.objects.filter(thread_id=thread_id).order_by("created_at", "sequence")
    return list(rows.values(*columns))


def test_clone_thread__copies_every_column_but_the_ids(source: StoredThread) -> None:
    reminder = text_content("<system-reminder>x", metadata={"systemReminder": {}})
    save([a_message(source, "reminder", at=2, type="text", role="user", content=reminder)])
    messages.update_messages([{"id": "m1", "content": text_content("edited")}])
    result = cloning.clone_thread(source.id)
    assert list_rows(result.thread.id) == list_rows(source.id)
    new_ids = set(result.message_id_map.values())
    assert len(new_ids) == 6 and new_ids.isdisjoint(result.message_id_map)
    owners = Message.objects.filter(thread_id=result.thread.id).values_list("resource_id")
    assert set(owners) == {("r",)}


def make_call(call_id: str, **state: Any) -> dict[str, Any]:
    invocation = {"toolCallId": call_id, "toolName": "weather", "args": {}, "state": "call"}
    return {"type": "tool-invocation", "toolInvocation": {**invocation, **state}}


def save_far_pairs(thread: StoredThread, distance: int) -> None:
    """Save two parallel calls, many messages, their results one by one, and an answer."""
    calls = {"format": 2, "parts": [make_call("c1", args={"x": 1}), make_call("c2")]}
    results = [{"format": 2, "parts": [make_call(f"c{n}", state="result")]} for n in (1, 2)]
    save(
        [
            a_message(thread, "before", at=0),
            a_message(thread, "call", role="assistant", content=calls, at=1),
            *(a_message(thread, at=2) for _ in range(distance)),
            a_message(thread, "r1", role="tool", content=results[0], at=3),
            a_message(thread, "r2", role="tool", content=results[1], at=4),
            a_message(thread, "after", role="assistant", at=5),
        ]
    )


@pytest.mark.parametrize("distance", [0, 300])
@pytest.mark.parametrize(
    ("selection", "copied"),
    [
        (MessageSelection(limit=1), ["after"]),
        (MessageSelection(limit=2), ["call", "r1", "r2", "after"]),
        (MessageSelection(start=moment(3)), ["call", "r1", "r2", "after"]),
        (MessageSelection(start=moment(0), end=moment(1)), ["before", "call", "r1", "r2"]),
        (MessageSelection(message_ids=["r2"]), ["call", "r1", "r2"]),
        (MessageSelection(message_ids=["before"]), ["before"]),
    ],
)
def test_clone_thread__copies_calls_with_results(
    selection: MessageSelection, copied: list[str], distance: int
) -> None:
    save_far_pairs(make_thread("r", "t"), distance)
    result = cloning.clone_thread("t", selection=selection)
    assert list(result.message_id_map) == copied
    assert [message.id for message in result.messages] == list(result.message_id_map.values())


def test_clone_thread__returns_the_stored_messages(source: StoredThread) -> None:
    result = cloning.clone_thread(source.id)
    listed = messages.get_messages(result.message_id_map.values())
    shown = [(m.id, m.thread_id, m.content, m.role, m.created) for m in result.messages]
    assert shown == [(m.id, m.thread_id, m.content, m.role, m.created) for m in listed]
    assert list(result.message_id_map) == [f"m{n}" for n in range(5)]


def test_clone_thread__keeps_the_order_of_equal_times() -> None:
    thread = make_thread()
    save([a_message(thread, f"m{n}", at=0, text=f"{n}") for n in range(6)])
    twice = cloning.clone_thread(cloning.clone_thread(thread.id).thread.id)
    assert [row["text"] for row in list_rows(twice.thread.id)] == list("012345")
    limited = cloning.clone_thread(thread.id, selection=MessageSelection(limit=2))
    assert [row["text"] for row in list_rows(limited.thread.id)] == ["4", "5"]


@pytest.mark.parametrize(
    ("selection", "kept"),
    [
        (MessageSelection(limit=2), "34"),
        (MessageSelection(limit=0), "01234"),
        (MessageSelection(limit=-7), "01234"),
        (MessageSelection(limit=2**62), "01234"),
        (MessageSelection(start=moment(1), end=moment(3)), "123"),
        (MessageSelection(end=moment(2), limit=2), "12"),
        (MessageSelection(message_ids=["m4", "m0", "missing", "foreign"]), "04"),
        (MessageSelection(start=moment(99)), ""),
    ],
)
def test_clone_thread__copies_only_the_selection(
    source: StoredThread, selection: Any, kept: str
) -> None:
    save([a_message(make_thread(), "foreign")])
    result = cloning.clone_thread(source.id, selection=selection)
    assert "".join(name[1:] for name in result.message_id_map) == kept
    assert len(list_rows(result.thread.id)) == len(kept) == len(result.messages)
    last = cloning.get_clone_metadata(result.thread)
    assert last is not None and last.get("lastMessageId") == (f"m{kept[-1]}" if kept else None)


def test_clone_thread__inherits_metadata_except_the_sources_own() -> None:
    cursor = {"om": {"lastObservedMessageCursor": {"id": "m1", "at": 1}, "hint": 2}}
    metadata = {"k": 1, "own": 1, "mastra": cursor, "memoryTokenLimiter": {}, "titlePinned": True}
    source = make_thread("r", metadata={**metadata, "clone": {"sourceThreadId": "older"}})
    save(some_messages(source, 3))
    result = cloning.clone_thread(source.id, metadata={"own": 2})
    cloned = result.thread.metadata
    assert cloned is not None and cloned.pop("clone")["sourceThreadId"] == source.id
    mapped = {"lastObservedMessageCursor": {"id": result.message_id_map["m1"], "at": 1}, "hint": 2}
    assert cloned == {"k": 1, "own": 2, "mastra": {"om": mapped}, "titlePinned": True}
    partly = cloning.clone_thread(source.id, selection=MessageSelection(limit=1)).thread.metadata
    assert partly is not None and partly["mastra"] == {"om": {"hint": 2}}


@pytest.mark.parametrize("value", [5, [], {"om": 5}, {"om": {"lastObservedMessageCursor": [1]}}])
def test_clone_thread__copies_malformed_metadata_unchanged(value: Any) -> None:
    source = make_thread("r", metadata={"mastra": value})
    cloned = cloning.clone_thread(source.id).thread.metadata
    assert cloned is not None and cloned["mastra"] == value


def test_clone_thread__errors_leave_nothing_behind(source: StoredThread) -> None:
    attempts: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"clone_id": source.id}, Conflict),
        ({"clone_id": "i" * 1025}, InvalidInput),
        ({"resource_id": "r" * 1025}, InvalidInput),
    ]
    for arguments, error in attempts:
        with pytest.raises(error):
            cloning.clone_thread(source.id, **arguments)
    with pytest.raises(ThreadNotFound):
        cloning.clone_thread("missing")
    assert Thread.objects.count() == 1 and Message.objects.count() == 5


def test_clone_thread__only_one_of_parallel_clones_gets_an_id(transactional_db: None) -> None:
    source = make_thread()
    save(some_messages(source, 5))

    def attempt(clone_id: str) -> bool:
        try:
            cloning.clone_thread(source.id, clone_id=clone_id)
        except Conflict:
            return False
        return True

    for number in range(10):
        outcomes = concurrently(attempt, [f"copy-{number}"] * 4)
        assert sorted(outcomes) == [False, False, False, True]
    assert Message.objects.count() == 5 * 11


def test_clone_thread__copies_parallel_saves_whole_or_not_at_all(transactional_db: None) -> None:
    source = make_thread()
    fill(source, 500)

    def act(number: int) -> Any:
        if number:
            return save([a_message(source) for _ in range(5)])
        return cloning.clone_thread(source.id)

    result = concurrently(act, [0, 1, 2, 3])[0]
    assert len(result.messages) == len(result.message_id_map) == len(list_rows(result.thread.id))
    assert len(result.messages) % 5 == 0


def test_clone_thread__into_another_resource(source: StoredThread) -> None:
    result = cloning.clone_thread(source.id, resource_id="s")
    assert result.thread.resource_id == "s"
    assert {message.resource_id for message in result.messages} == {"s"}
    assert Message.objects.filter(resource_id="s").count() == 5


def test_clone_thread__copies_working_memory_of_the_thread(source: StoredThread) -> None:
    working_memory.save_for_thread(source.id, "r", "x", source="python")
    result = cloning.clone_thread(source.id, memory_options=BY_THREAD)
    assert working_memory.find_for_thread(result.thread.id) == "x"
    assert result.thread.metadata == threads.get_thread(result.thread.id).metadata
    assert (result.thread.metadata or {})["workingMemory"] == "x"
    working_memory.save_for_thread(result.thread.id, "r", "changed", source="python")
    assert working_memory.find_for_thread(source.id) == "x"


@pytest.mark.parametrize("memory", [None, WorkingMemoryOptions(), BY_RESOURCE])
def test_clone_thread__without_the_option_leaves_working_memory(
    source: StoredThread, memory: WorkingMemoryOptions | None
) -> None:
    working_memory.save_for_thread(source.id, "r", "x", source="python")
    assert "workingMemory" not in str(
        cloning.clone_thread(source.id, memory_options=memory).thread.metadata
    )


def test_clone_thread__copies_working_memory_to_a_new_resource(
    source: StoredThread,
) -> None:
    working_memory.save_for_resource("r", "mine", source="python")
    cloning.clone_thread(source.id, memory_options=BY_RESOURCE)
    assert WorkingMemoryRevision.objects.count() == 1
    working_memory.save_for_resource("s", "theirs", source="python")
    cloning.clone_thread(source.id, resource_id="s", memory_options=BY_RESOURCE)
    assert working_memory.find_for_resource("s") == "mine"
    assert WorkingMemoryRevision.objects.filter(content="theirs").exists()
    assert WorkingMemoryRevision.objects.get(content="mine", source="clone").version == 2


def test_clone_thread__keeps_other_memory_if_the_source_has_none(
    source: StoredThread,
) -> None:
    working_memory.save_for_resource("s", "theirs", source="python")
    cloning.clone_thread(source.id, resource_id="s", memory_options=BY_RESOURCE)
    assert working_memory.find_for_resource("s") == "theirs"


def test_clone_thread__needs_the_same_statements_for_any_size(
    statements: Statements,
) -> None:
    counts = set()
    for size in (0, 3, 300):
        thread = make_thread("r", metadata={"k": 1})
        fill(thread, size)
        with statements() as sent:
            cloning.clone_thread(thread.id, memory_options=BY_RESOURCE)
        assert len(sent) <= 7
        record = make_record(thread)
        make_chunk(record), make_chunk(record, 1)
        working_memory.save_for_thread(thread.id, "r", "x", source="python")
        with statements() as sent:
            cloning.clone_thread(thread.id, memory_options=BY_THREAD)
        counts.add(len(sent))
    assert len(counts) == 1 and max(counts) <= 13


def test_list_clone_history__lists_sources_and_clones(source: StoredThread) -> None:
    child = cloning.clone_thread(source.id).thread
    grandchild = cloning.clone_thread(child.id).thread
    elsewhere = cloning.clone_thread(source.id, resource_id="s").thread
    assert [thread.id for thread in cloning.list_clones(source.id)] == [child.id]
    assert [t.id for t in cloning.list_clones(source.id, resource_id="s")] == [elsewhere.id]
    assert cloning.list_clones("missing") == []
    history = [thread.id for thread in cloning.list_clone_history(grandchild.id)]
    assert history == [source.id, child.id, grandchild.id]
    parent = cloning.find_source(child.id)
    assert parent is not None and parent.id == source.id
    assert cloning.find_source(source.id) is None and cloning.find_source("missing") is None


def test_list_clone_history__survives_deletion_of_the_source(source: StoredThread) -> None:
    child = cloning.clone_thread(source.id).thread
    threads.delete_thread(source.id)
    assert cloning.find_source(child.id) is None
    assert [thread.id for thread in cloning.list_clone_history(child.id)] == [child.id]
    assert [t.id for t in cloning.list_clones(source.id, resource_id="r")] == [child.id]
    assert cloning.list_clone_history("missing") == []


def test_list_clone_history__ends_at_a_cycle() -> None:
    for name, parent in (("a", "b"), ("b", "a")):
        make_thread("r", name, metadata={"clone": {"sourceThreadId": parent}})
    assert [thread.id for thread in cloning.list_clone_history("a")] == ["b", "a"]


@pytest.mark.parametrize("value", [5, {}, {"sourceThreadId": 5}, {"sourceThreadId": None}, "x"])
def test_get_clone_metadata__is_none_without_a_source_id(value: Any) -> None:
    thread = make_thread("r", metadata={"clone": value})
    assert cloning.get_clone_metadata(thread) is None
    assert cloning.find_source(thread.id) is None
    assert [row.id for row in cloning.list_clone_history(thread.id)] == [thread.id]
