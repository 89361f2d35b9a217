"""Tests of storing batches: duplicates, objects of other resources, and invalid rows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from mastra_memory import signals
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedRevision,
    ImportedThread,
    ImportedWorkingMemory,
    ImportNote,
    OmittedRecord,
    SourceItem,
)
from mastra_memory.importers.storage import queries as storage_queries
from mastra_memory.models import Message, Thread, WorkingMemory
from mastra_memory.search import lists
from tests.conftest import Statements
from tests.support.factories import make_thread, moment, save, some_messages, text_content
from tests.support.importing import count_outcomes, import_items, list_texts

pytestmark = pytest.mark.django_db


def a_thread(thread_id: str = "t1", **more: Any) -> ImportedThread:
    defaults: dict[str, Any] = {"resource_id": "alice", "created_at": moment(), "location": "here"}
    return ImportedThread(id=thread_id, **defaults | {"updated_at": moment(9)} | more)


def a_message(message_id: str = "m1", thread_id: str = "t1", **more: Any) -> ImportedMessage:
    defaults: dict[str, Any] = {
        "resource_id": "alice",
        "role": "user",
        "content": text_content(message_id),
        "created_at": moment(),
        "location": "here",
    }
    return ImportedMessage(id=message_id, thread_id=thread_id, **defaults | more)


def a_memory(content: str, **more: Any) -> ImportedWorkingMemory:
    defaults: dict[str, Any] = {"resource_id": "alice", "created_at": moment(), "location": "here"}
    return ImportedWorkingMemory(content=content, updated_at=moment(9), **defaults | more)


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_load__equal_times_keep_the_order_of_the_source(batch: int) -> None:
    ids = ["z", "b", "y", "a", "x"]
    import_items([a_thread(), *map(a_message, ids)], batch=batch)
    assert [text for _, text in list_texts()] == ids


def test_load__existing_objects_are_not_changed() -> None:
    import_items([a_thread(title="Old"), a_message()])
    changed = a_message(content=text_content("new"), role="assistant")
    report = import_items([a_thread(title="New", metadata={"k": 1}), changed])
    assert (Thread.objects.get().title, Thread.objects.get().metadata) == ("Old", None)
    assert list_texts() == [("user", "m1")]
    assert (
        count_outcomes(report, "threads")
        == count_outcomes(report, "messages")
        == {"already there": 1}
    )


def test_load__update_overwrites_and_counts_what_differs() -> None:
    import_items([a_thread(title="Old"), a_message("m1"), a_message("m2")])
    changed = [
        a_thread(title="New", metadata={"k": 1}),
        a_message("m1", content=text_content("new"), role="assistant"),
        a_message("m2"),
    ]
    report = import_items(changed, update=True)
    assert (Thread.objects.get().title, Thread.objects.get().metadata) == ("New", {"k": 1})
    assert list_texts() == [("assistant", "new"), ("user", "m2")]
    assert count_outcomes(report, "threads") == {"updated": 1}
    assert count_outcomes(report, "messages") == {"updated": 1, "already there": 1}
    assert lists.search_messages("new").count() == 1
    assert count_outcomes(import_items(changed, update=True), "messages") == {"already there": 2}


def test_load__update_keeps_edited_messages() -> None:
    import_items([a_thread(), a_message(edited_at=moment(5), content=text_content("corrected"))])
    report = import_items([a_thread(), a_message()], update=True)
    assert list_texts() == [("user", "corrected")]
    assert count_outcomes(report, "messages") == {"already there": 1}


def test_load__raises_updated_at_of_existing_threads() -> None:
    import_items([a_thread(updated_at=moment(100))])
    import_items([a_thread(updated_at=moment(50))])
    assert Thread.objects.get().updated_at == moment(100)
    import_items([a_thread(updated_at=moment(200))])
    assert Thread.objects.get().updated_at == moment(200)


def test_load__ids_of_another_resource_are_refused() -> None:
    bobs = make_thread("bob", "t1", title="Bob's")
    save(some_messages(bobs, 1))
    report = import_items(
        [
            a_thread("t1", title="Mine now"),
            a_message("m9", "t1"),
            a_thread("t2"),
            a_message("m0", "t2"),
            a_memory("x", thread_id="t1"),
        ],
        update=True,
    )
    assert count_outcomes(report, "threads") == {"stored": 1, "refused": 1}
    assert count_outcomes(report, "messages") == {"refused": 2}
    assert count_outcomes(report, "working memories") == {"refused": 1}
    stored = Thread.objects.get(pk="t1")
    assert (stored.resource_id, stored.title) == ("bob", "Bob's")
    assert list_texts() == [("user", "Message 0")]


def test_load__repeated_id_in_a_batch_is_stored_once() -> None:
    items: list[SourceItem] = [a_thread(title="A"), a_thread(title="B"), a_message(), a_message()]
    report = import_items(items)
    assert Thread.objects.get().title == "A"
    expected = {"stored": 1, "already there": 1}
    assert count_outcomes(report, "threads") == count_outcomes(report, "messages") == expected
    assert count_outcomes(import_items(items, update=True), "messages") == {"already there": 2}


@pytest.mark.parametrize("place", [0, 1, 11, 20])
def test_load__row_refused_by_the_database_does_not_affect_others(place: int) -> None:
    ids = [f"m{n}" for n in range(19)]
    items: list[SourceItem] = [a_thread(), *map(a_message, ids)]
    revision = ImportedRevision(version=2**40, content="x", source="api", created_at=moment())
    items.insert(place, a_memory("x", revisions=[revision]))
    report = import_items(items)
    assert count_outcomes(report, "messages") == {"stored": 19}
    assert count_outcomes(report, "working memories") == {"refused": 1}
    assert [text for _, text in list_texts()] == ids
    reason = "refused: 1 working memories: the database refuses it: NumericValueOutOfRange"
    assert reason in list(report.format_lines())


def test_load__row_refused_by_copy_does_not_affect_others(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = storage_queries.CREATE_MESSAGE_TABLE.replace(
        "role text", "role text CHECK (role <> 'tool')"
    )
    monkeypatch.setattr(storage_queries, "CREATE_MESSAGE_TABLE", strict)
    report = import_items([a_thread(), a_message("m1"), a_message("m2", role="tool")])
    assert count_outcomes(report, "messages") == {"stored": 1, "refused": 1}


def test_load__counts_add_up_with_omitted_records() -> None:
    items: list[SourceItem] = [
        a_thread(),
        a_message(),
        OmittedRecord("messages", "skipped", "here", "role system"),
        OmittedRecord("messages", "joined", "here", "result of a tool call"),
        a_message("bad", role="robot"),
        ImportNote("something"),
        a_message("copy", is_copy=True),
    ]
    report = import_items(items)
    assert count_outcomes(report, "messages") == {
        "stored": 1,
        "joined": 1,
        "skipped": 1,
        "refused": 1,
    }
    assert report.count_read("messages") == 4
    assert count_outcomes(report, "branch copies") == {"stored": 1}
    assert "note: 1 something" in list(report.format_lines())


def test_load__dry_run_counts_and_stores_nothing() -> None:
    import_items([a_thread(), a_message(), a_memory("known")])
    items: list[SourceItem] = [
        a_thread(),
        a_thread("t2"),
        a_message(),
        a_message("m2"),
        a_memory("x"),
    ]
    report = import_items(items, dry_run=True)
    both = {"stored": 1, "already there": 1}
    assert count_outcomes(report, "threads") == count_outcomes(report, "messages") == both
    assert count_outcomes(report, "working memories") == {"already there": 1}
    assert (Thread.objects.count(), Message.objects.count()) == (1, 1)


def test_load__working_memory_of_a_resource_and_of_a_thread() -> None:
    import_items([a_thread(), a_memory("of alice"), a_memory("of t1", thread_id="t1")])
    stored = WorkingMemory.objects.order_by("scope")
    assert [(memory.thread_id, memory.content) for memory in stored] == [
        (None, "of alice"),
        ("t1", "of t1"),
    ]
    assert [memory.version for memory in stored] == [1, 1]
    assert {memory.updated_at for memory in stored} == {moment(9)}


def test_load__number_of_statements_is_constant(statements: Statements) -> None:
    items = [a_thread(), *(a_message(f"m{n}") for n in range(500)), a_memory("x", thread_id="t1")]
    with statements() as few:
        import_items([replace(a_thread("t0")), a_message("m", "t0"), a_memory("y")])
    with statements() as many:
        import_items(items)
    assert len(many) == len(few)


def test_load__sends_messages_saved_after_commit(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    received: list[tuple[list[str], list[str]]] = []

    def listen(thread_ids: list[str], message_ids: list[str], **rest: Any) -> None:
        received.append((thread_ids, message_ids))

    signals.messages_saved.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            import_items([a_thread(), a_message("m1"), a_message("m2")])
            import_items([a_thread(), a_message("m1")])
    finally:
        signals.messages_saved.disconnect(listen)
    assert received == [(["t1"], ["m1", "m2"])]


def test_load__failing_source_keeps_stored_batches() -> None:
    def breaking() -> Iterator[SourceItem]:
        yield a_thread()
        yield from (a_message(f"m{n}") for n in range(1000))
        raise RuntimeError("cable cut")

    with pytest.raises(RuntimeError, match="cable cut"):
        import_items(breaking(), batch=100)
    assert 0 < Message.objects.count() <= 1000


@pytest.mark.parametrize("words", ["", "\x00", "a\ud800", "x" * 3_000_000, "ü " * 100_000])
def test_load__any_text_can_be_stored(words: str) -> None:
    report = import_items([a_thread(title=words), a_message(content=text_content(words))])
    assert count_outcomes(report, "messages") == count_outcomes(report, "threads") == {"stored": 1}


def test_load__deeply_nested_json_is_refused() -> None:
    deep: Any = "end"
    for _ in range(1000):
        deep = [deep]
    report = import_items([a_thread(metadata={"deep": deep}), a_thread("t2")])
    assert count_outcomes(report, "threads") == {"stored": 1, "refused": 1}
