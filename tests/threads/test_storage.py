"""Creating, reading, changing and deleting threads."""

from typing import Any

import pytest

from mastra_memory import threads, working_memory
from mastra_memory.exceptions import AccessDenied, Conflict, InvalidInput, ThreadNotFound
from mastra_memory.models import Thread
from tests.conftest import Statements
from tests.support.concurrency import concurrently
from tests.support.factories import a_message, make_thread, moment, save

pytestmark = pytest.mark.django_db
DIRTY = "t\x00\ud800"
CLEAN = "t\ufffd\ufffd"


def test_create_thread__assigns_an_id_and_equal_times() -> None:
    thread = threads.create_thread("r")
    assert len(thread.id) == 36 and thread.created == thread.updated
    assert (thread.title, thread.metadata) == ("", None)


@pytest.mark.parametrize("resource_id", ["", "r" * 1025, 5, None])
def test_create_thread__refuses_an_invalid_resource_id(resource_id: Any) -> None:
    with pytest.raises(InvalidInput):
        threads.create_thread(resource_id)


def test_create_thread__the_longest_ids_fit_every_index() -> None:
    thread = threads.create_thread("☃" * 341, thread_id="t" * 1024)
    save([a_message(thread, "m" * 1024)])
    assert threads.get_thread(thread.id) is not None


def test_create_thread__parallel_calls_return_the_same_thread(
    transactional_db: None,
) -> None:
    for name in ("t0", "t1", "t2", "t3", "t4"):

        def create(title: str, thread_id: str = name) -> str:
            return threads.create_thread("r", thread_id=thread_id, title=title).title

        assert set(concurrently(create, list("abcd"))) == {Thread.objects.get(pk=name).title}


def test_create_thread__refuses_one_of_two_parallel_resources(transactional_db: None) -> None:
    def create(resource_id: str) -> str:
        try:
            return threads.create_thread(resource_id, thread_id="t").resource_id
        except Conflict:
            return "refused"

    outcomes = concurrently(create, ["a", "b"])
    assert sorted(outcomes) == sorted([Thread.objects.get().resource_id, "refused"])


def test_save_thread__replaces_all_but_the_creation_time() -> None:
    first = threads.save_thread("t", "r", title="Old", metadata={"a": 1})
    again = threads.save_thread("t", "r", title="New", metadata={"b": 2})
    assert (again.title, again.metadata) == ("New", {"b": 2})
    assert again.created == first.created and again.updated > first.updated
    assert threads.save_thread("t", "r").metadata is None
    with pytest.raises(Conflict):
        threads.save_thread("t", "other")


def test_get_thread__checks_the_owner() -> None:
    thread = make_thread("r")
    assert threads.get_thread(thread.id, resource_id="r") == thread
    with pytest.raises(AccessDenied):
        threads.get_thread(thread.id, resource_id="s")
    with pytest.raises(ThreadNotFound):
        threads.get_thread("missing")
    assert threads.find_thread("missing") is None


def test_update_thread__merges_keys_at_the_top() -> None:
    thread = make_thread("r", metadata={"a": 1, "b": {"c": 1}})
    updated = threads.update_thread(thread.id, metadata={"b": {"d": 2}, "e": None})
    assert updated.metadata == {"a": 1, "b": {"d": 2}, "e": None}
    assert threads.update_thread(make_thread("r").id, metadata={"k": 1}).metadata == {"k": 1}


def test_update_thread__replacing_keeps_reserved_keys() -> None:
    reserved = {"clone": {"sourceThreadId": "x"}, "mastra": {"om": {}}, "titlePinned": True}
    thread = make_thread("r", metadata={**reserved, "gone": 1})
    replaced = threads.update_thread(thread.id, metadata={"new": 2}, merge=False)
    assert replaced.metadata == {**reserved, "new": 2}
    named = threads.update_thread(thread.id, metadata={"titlePinned": False}, merge=False)
    assert named.metadata == {**reserved, "titlePinned": False}


def test_update_thread__replacing_keeps_working_memory() -> None:
    thread = make_thread("r", metadata={"workingMemory": "# this", "k": 1})
    assert threads.update_thread(thread.id, metadata={}, merge=False).metadata == {
        "workingMemory": "# this"
    }
    changed = threads.update_thread(thread.id, metadata={"workingMemory": "# new"}, merge=False)
    assert changed.metadata == {"workingMemory": "# new"}
    cleared = threads.update_thread(thread.id, metadata={"workingMemory": None}, merge=False)
    assert "# new" not in str(cleared.metadata)
    assert working_memory.find_for_thread(thread.id) is None


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("new", ["# new", "", None])
def test_update_thread__replaces_working_memory_that_is_not_text(
    merge: bool, new: str | None
) -> None:
    thread = make_thread("r", metadata={"workingMemory": {"a": 2}, "titlePinned": True})
    named = threads.update_thread(thread.id, metadata={"workingMemory": new}, merge=merge)
    assert named.metadata is not None and named.metadata["titlePinned"] is True
    assert named.metadata.get("workingMemory") == (new or None)


def test_update_thread__parallel_merges_lose_nothing(transactional_db: None) -> None:
    thread = make_thread("r")
    concurrently(lambda n: threads.update_thread(thread.id, metadata={f"k{n}": n}), list(range(8)))
    assert threads.get_thread(thread.id).metadata == {f"k{n}": n for n in range(8)}


def test_update_thread__every_change_moves_the_time_forward() -> None:
    thread = make_thread("r")
    stamps = [thread.updated, *(threads.touch_thread(thread.id).updated for _ in range(20))]
    assert stamps == sorted(set(stamps))


def test_update_thread__an_unknown_thread_is_an_error() -> None:
    with pytest.raises(ThreadNotFound):
        threads.update_thread("missing", title="x")


@pytest.mark.parametrize(("title", "source"), [("Mine", "manual"), ("", "")])
def test_update_thread__a_title_from_the_caller_is_manual(title: str, source: str) -> None:
    thread = make_thread("r", title=title)
    assert Thread.objects.get(pk=thread.id).title_source == source
    threads.update_thread(thread.id, title="New")
    assert Thread.objects.get(pk=thread.id).title_source == "manual"
    threads.update_thread(thread.id, title="")
    assert Thread.objects.get(pk=thread.id).title_source == ""


def test_transfer_thread__needs_a_thread_and_a_resource() -> None:
    with pytest.raises(ThreadNotFound):
        threads.transfer_thread("missing", "s")
    with pytest.raises(InvalidInput):
        threads.transfer_thread(make_thread("r").id, "")


def test_transfer_thread__moves_working_memory_of_the_thread() -> None:
    thread = make_thread("r", metadata={"workingMemory": "# this"})
    working_memory.save_for_resource("r", "stays", source="python")
    moved = threads.transfer_thread(thread.id, "s")
    assert moved.metadata == {"workingMemory": "# this"} and moved.created == thread.created
    assert working_memory.find_for_resource("r") == "stays"
    assert working_memory.find_for_resource("s") is None


@pytest.mark.parametrize("count", [1, 60])
def test_delete_thread__needs_one_statement_for_any_size(
    count: int, statements: Statements
) -> None:
    thread = make_thread("r")
    save([a_message(thread) for _ in range(count)])
    with statements() as sent:
        assert threads.delete_thread(thread.id) is True
    assert len(sent) == 1
    assert threads.delete_thread(thread.id) is False


def test_list_threads__lists_everything_in_one_statement(statements: Statements) -> None:
    for n in range(3):
        make_thread("r", f"t{n}")
    Thread.objects.filter(pk="t1").update(created_at=moment())
    with statements() as sent:
        page = threads.list_threads(resource_id="r", per_page=False, direction="ASC")
    assert len(sent) == 1
    assert page.threads[0].id == "t1"
    assert (page.total, page.per_page, page.has_more) == (3, False, False)


@pytest.mark.parametrize(
    "arguments",
    [
        {"page": -1},
        {"page": 1.5},
        {"page": True},
        {"page": 2**53},
        {"per_page": -1},
        {"per_page": True},
        {"per_page": False, "page": 1},
        {"metadata": {"a.b": 1}},
    ],
)
def test_list_threads__refuses_invalid_arguments(arguments: Any) -> None:
    with pytest.raises(InvalidInput):
        threads.list_threads(**arguments)


@pytest.mark.parametrize(
    "value", ["", "asc; DELETE FROM mastra_memory_thread", "id", None, 5, ["ASC"]]
)
def test_list_threads__an_unknown_order_is_the_default(value: Any) -> None:
    for number in range(3):
        make_thread("r", str(number))
    newest_first = ["2", "1", "0"]
    for order in (
        {"order_by": value},
        {"direction": value},
        {"order_by": value, "direction": value},
    ):
        assert [thread.id for thread in threads.list_threads(**order).threads] == newest_first
    listed = threads.list_threads(order_by="updated_at", direction="ASC").threads
    assert [thread.id for thread in listed] == newest_first[::-1]


def test_threads__ids_are_cleaned_before_use() -> None:
    thread = threads.create_thread("r", thread_id=DIRTY, title=DIRTY, metadata={DIRTY: DIRTY})
    assert (thread.id, thread.title, thread.metadata) == (CLEAN, CLEAN, {CLEAN: CLEAN})
    assert threads.get_thread(DIRTY).id == CLEAN
    assert threads.update_thread(DIRTY, title="x").id == CLEAN
    assert threads.transfer_thread(DIRTY, DIRTY).resource_id == CLEAN
    assert threads.list_threads(resource_id=DIRTY).total == 1
    assert threads.delete_thread(DIRTY)
