"""Copying threads, and finding what was copied from what."""

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
    """A thread of five messages."""
    thread = make_thread("r", "source", title="Trip")
    save(some_messages(thread, 5))
    return thread


def rows_of(thread_id: str) -> list[dict[str, Any]]:
    """What a clone keeps of its messages, in order."""
    kept = ("role", "type", "signal", "content", "text", "search", "created_at", "edited_at")
    found = Message.objects.filter(thread_id=thread_id).order_by("created_at", "sequence")
    return list(found.values(*kept))


def test_clone_thread__copies_every_column_and_gives_new_ids(source: StoredThread) -> None:
    odd = text_content("<system-reminder>x", metadata={"systemReminder": {}})
    save([a_message(source, "odd", at=2, type="text", role="user", content=odd)])
    messages.update_messages([{"id": "m1", "content": text_content("edited")}])
    result = cloning.clone_thread(source.id)
    assert rows_of(result.thread.id) == rows_of(source.id)
    fresh = set(result.message_id_map.values())
    assert len(fresh) == 6 and fresh.isdisjoint(result.message_id_map)
    owners = Message.objects.filter(thread_id=result.thread.id).values_list("resource_id")
    assert set(owners) == {("r",)}


def test_clone_thread__answers_what_a_list_of_the_clone_shows(source: StoredThread) -> None:
    result = cloning.clone_thread(source.id)
    listed = messages.get_messages(result.message_id_map.values())
    shown = [(m.id, m.thread_id, m.content, m.role, m.created) for m in result.messages]
    assert shown == [(m.id, m.thread_id, m.content, m.role, m.created) for m in listed]
    assert list(result.message_id_map) == [f"m{n}" for n in range(5)]


def test_clone_thread__equal_times_keep_their_order_and_the_limit_the_last() -> None:
    thread = make_thread()
    save([a_message(thread, f"m{n}", at=0, text=f"{n}") for n in range(6)])
    twice = cloning.clone_thread(cloning.clone_thread(thread.id).thread.id)
    assert [row["text"] for row in rows_of(twice.thread.id)] == list("012345")
    limited = cloning.clone_thread(thread.id, selection=MessageSelection(limit=2))
    assert [row["text"] for row in rows_of(limited.thread.id)] == ["4", "5"]


@pytest.mark.parametrize(
    ("selection", "kept"),
    [
        (MessageSelection(limit=2), "34"),
        (MessageSelection(limit=0), "01234"),
        (MessageSelection(limit=-7), "01234"),
        (MessageSelection(limit=2**62), "01234"),
        (MessageSelection(start=moment(1), end=moment(3)), "123"),
        (MessageSelection(end=moment(2), limit=2), "12"),
        (MessageSelection(message_ids=["m4", "m0", "nobody", "foreign"]), "04"),
        (MessageSelection(start=moment(99)), ""),
    ],
)
def test_clone_thread__selection(source: StoredThread, selection: Any, kept: str) -> None:
    save([a_message(make_thread(), "foreign")])
    result = cloning.clone_thread(source.id, selection=selection)
    assert "".join(name[1:] for name in result.message_id_map) == kept
    assert len(rows_of(result.thread.id)) == len(kept) == len(result.messages)
    last = cloning.get_clone_metadata(result.thread)
    assert last is not None and last.get("lastMessageId") == (f"m{kept[-1]}" if kept else None)


def test_clone_thread__metadata_is_inherited_but_for_what_is_the_sources_own() -> None:
    cursor = {"om": {"lastObservedMessageCursor": {"id": "m1", "at": 1}, "hint": 2}}
    metadata = {"k": 1, "own": 1, "mastra": cursor, "memoryTokenLimiter": {}, "titlePinned": True}
    source = make_thread("r", metadata={**metadata, "clone": {"sourceThreadId": "older"}})
    save(some_messages(source, 3))
    result = cloning.clone_thread(source.id, metadata={"own": 2})
    made = result.thread.metadata
    assert made is not None and made.pop("clone")["sourceThreadId"] == source.id
    mapped = {"lastObservedMessageCursor": {"id": result.message_id_map["m1"], "at": 1}, "hint": 2}
    assert made == {"k": 1, "own": 2, "mastra": {"om": mapped}, "titlePinned": True}
    partly = cloning.clone_thread(source.id, selection=MessageSelection(limit=1)).thread.metadata
    assert partly is not None and partly["mastra"] == {"om": {"hint": 2}}


@pytest.mark.parametrize("odd", [5, [], {"om": 5}, {"om": {"lastObservedMessageCursor": [1]}}])
def test_clone_thread__odd_metadata_is_copied_as_it_is(odd: Any) -> None:
    source = make_thread("r", metadata={"mastra": odd})
    made = cloning.clone_thread(source.id).thread.metadata
    assert made is not None and made["mastra"] == odd


def test_clone_thread__errors_leave_nothing_behind(source: StoredThread) -> None:
    attempts: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"clone_id": source.id}, Conflict),
        ({"clone_id": "i" * 1025}, InvalidInput),
        ({"resource_id": "r" * 1025}, InvalidInput),
    ]
    for choices, error in attempts:
        with pytest.raises(error):
            cloning.clone_thread(source.id, **choices)
    with pytest.raises(ThreadNotFound):
        cloning.clone_thread("nobody")
    assert Thread.objects.count() == 1 and Message.objects.count() == 5


def test_clone_thread__of_several_with_one_id_only_one_succeeds(transactional_db: None) -> None:
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


def test_clone_thread__saves_meanwhile_are_wholly_in_or_out(transactional_db: None) -> None:
    source = make_thread()
    fill(source, 500)

    def act(number: int) -> Any:
        if number:
            return save([a_message(source) for _ in range(5)])
        return cloning.clone_thread(source.id)

    result = concurrently(act, [0, 1, 2, 3])[0]
    assert len(result.messages) == len(result.message_id_map) == len(rows_of(result.thread.id))
    assert len(result.messages) % 5 == 0


def test_clone_thread__into_another_resource(source: StoredThread) -> None:
    result = cloning.clone_thread(source.id, resource_id="s")
    assert result.thread.resource_id == "s"
    assert {message.resource_id for message in result.messages} == {"s"}
    assert Message.objects.filter(resource_id="s").count() == 5


def test_clone_thread__working_memory_of_the_thread_is_copied(source: StoredThread) -> None:
    working_memory.save_for_thread(source.id, "r", "x", source="python")
    result = cloning.clone_thread(source.id, memory=BY_THREAD)
    assert working_memory.find_for_thread(result.thread.id) == "x"
    assert result.thread.metadata == threads.get_thread(result.thread.id).metadata
    assert (result.thread.metadata or {})["workingMemory"] == "x"
    working_memory.save_for_thread(result.thread.id, "r", "changed", source="python")
    assert working_memory.find_for_thread(source.id) == "x"


@pytest.mark.parametrize("off", [None, WorkingMemoryOptions(), BY_RESOURCE])
def test_clone_thread__working_memory_of_the_thread_stays_where_it_is_off(
    source: StoredThread, off: WorkingMemoryOptions | None
) -> None:
    working_memory.save_for_thread(source.id, "r", "x", source="python")
    assert "workingMemory" not in str(cloning.clone_thread(source.id, memory=off).thread.metadata)


def test_clone_thread__working_memory_of_the_resource_follows_to_another(
    source: StoredThread,
) -> None:
    working_memory.save_for_resource("r", "mine", source="python")
    cloning.clone_thread(source.id, memory=BY_RESOURCE)
    assert WorkingMemoryRevision.objects.count() == 1
    working_memory.save_for_resource("s", "theirs", source="python")
    cloning.clone_thread(source.id, resource_id="s", memory=BY_RESOURCE)
    assert working_memory.find_for_resource("s") == "mine"
    assert WorkingMemoryRevision.objects.filter(content="theirs").exists()
    assert WorkingMemoryRevision.objects.get(content="mine", source="clone").version == 2


def test_clone_thread__without_working_memory_the_others_is_left_alone(
    source: StoredThread,
) -> None:
    working_memory.save_for_resource("s", "theirs", source="python")
    cloning.clone_thread(source.id, resource_id="s", memory=BY_RESOURCE)
    assert working_memory.find_for_resource("s") == "theirs"


def test_clone_thread__costs_the_same_statements_whatever_the_size(
    statements: Statements,
) -> None:
    counts = set()
    for size in (0, 3, 300):
        thread = make_thread("r", metadata={"k": 1})
        fill(thread, size)
        with statements() as sent:
            cloning.clone_thread(thread.id, memory=BY_RESOURCE)
        assert len(sent) <= 7
        record = make_record(thread)
        make_chunk(record), make_chunk(record, 1)
        working_memory.save_for_thread(thread.id, "r", "x", source="python")
        with statements() as sent:
            cloning.clone_thread(thread.id, memory=BY_THREAD)
        counts.add(len(sent))
    assert len(counts) == 1 and max(counts) <= 13


def test_lineage__of_clones(source: StoredThread) -> None:
    child = cloning.clone_thread(source.id).thread
    grandchild = cloning.clone_thread(child.id).thread
    abroad = cloning.clone_thread(source.id, resource_id="s").thread
    assert [thread.id for thread in cloning.list_clones(source.id)] == [child.id]
    assert [t.id for t in cloning.list_clones(source.id, resource_id="s")] == [abroad.id]
    assert cloning.list_clones("nobody") == []
    history = [thread.id for thread in cloning.list_clone_history(grandchild.id)]
    assert history == [source.id, child.id, grandchild.id]
    found = cloning.find_source(child.id)
    assert found is not None and found.id == source.id
    assert cloning.find_source(source.id) is None and cloning.find_source("nobody") is None


def test_lineage__outlives_the_source(source: StoredThread) -> None:
    child = cloning.clone_thread(source.id).thread
    threads.delete_thread(source.id)
    assert cloning.find_source(child.id) is None
    assert [thread.id for thread in cloning.list_clone_history(child.id)] == [child.id]
    assert [t.id for t in cloning.list_clones(source.id, resource_id="r")] == [child.id]
    assert cloning.list_clone_history("nobody") == []


def test_lineage__a_circle_ends() -> None:
    for name, parent in (("a", "b"), ("b", "a")):
        make_thread("r", name, metadata={"clone": {"sourceThreadId": parent}})
    assert [thread.id for thread in cloning.list_clone_history("a")] == ["b", "a"]


@pytest.mark.parametrize("odd", [5, {}, {"sourceThreadId": 5}, {"sourceThreadId": None}, "x"])
def test_lineage__metadata_that_names_no_source_is_no_clone(odd: Any) -> None:
    thread = make_thread("r", metadata={"clone": odd})
    assert cloning.get_clone_metadata(thread) is None
    assert cloning.find_source(thread.id) is None
    assert [found.id for found in cloning.list_clone_history(thread.id)] == [thread.id]
