"""The number of SQL statements of each route, without authentication and savepoints."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from tests.conftest import Person, Statements
from tests.support.api_client import Answer
from tests.support.factories import (
    Json,
    a_message,
    fill,
    make_chunk,
    make_record,
    make_thread,
    unique,
)

AROUND = {"include": [{"id": "t:1", "withPreviousMessages": 2, "withNextMessages": 2}]}
WM = {"workingMemory": {"enabled": True}}
Call = Callable[[Person, int], Answer]


def batch(person: Person, size: int) -> Json:
    """A batch of new messages for thread `t`."""
    thread = Memory().get_thread("t")
    return {"messages": [a_message(thread, unique("new")) for _ in range(size)]}


CALLS: dict[str, tuple[int, Call]] = {
    "thread": (1, lambda who, n: who.api.get("threads/t")),
    "threads": (1, lambda who, n: who.api.get("threads", {"perPage": n})),
    "threads by metadata": (1, lambda who, n: who.api.get("threads", {"metadata": {"k": 1}})),
    "page": (1, lambda who, n: who.api.get("threads/t/messages", {"perPage": n})),
    "deep page": (1, lambda who, n: who.api.get("threads/t/messages", {"perPage": 1, "page": n})),
    "page with windows": (3, lambda who, n: who.api.get("threads/t/messages", AROUND)),
    "create": (1, lambda who, n: who.api.post("threads", {"resourceId": "x"})),
    "create again": (
        2,
        lambda who, n: who.api.post("threads", {"resourceId": "x", "threadId": "t"}),
    ),
    "patch": (3, lambda who, n: who.api.patch("threads/t", {"title": "x", "metadata": {"a": n}})),
    "save": (2, lambda who, n: who.api.post("save-messages", batch(who, n))),
    "save with observations": (2, lambda who, n: who.api.post("save-messages", batch(who, n))),
    "delete messages": (
        2,
        lambda who, n: who.api.post(
            "messages/delete", {"messageIds": [f"t:{i}" for i in range(n)]}
        ),
    ),
    "clone": (8, lambda who, n: who.api.post("threads/t/clone", {})),
    "clone of some": (
        9,  # one more to find tool calls and results that the selection separates
        lambda who, n: who.api.post("threads/t/clone", {"options": {"messageLimit": n}}),
    ),
    "clone with observations": (12, lambda who, n: who.api.post("threads/t/clone", {})),
    "working memory": (3, lambda who, n: who.api.get("threads/t/working-memory")),
    "observations": (
        5,
        lambda who, n: who.api.get(
            "observational-memory", {"resourceId": who.resource_id, "threadId": "t", "limit": n}
        ),
    ),
    "delete": (4, lambda who, n: who.api.delete("threads/t")),
}


@pytest.mark.parametrize("name", CALLS)
def test_statements__are_few_and_do_not_grow(
    alice: Person, memory_settings: Callable[..., None], statements: Statements, name: str
) -> None:
    observes = name != "save"  # Tracking what is saved takes statements of its own.
    memory_settings(OPTIONS=WM | {"observationalMemory": observes})
    most, call = CALLS[name]
    counts = set()
    for size in (1, 30):
        thread = make_thread(alice.resource_id, "t", metadata={"k": 1})
        fill(thread, size * 4)
        if "observ" in name:
            for number in range(size):
                make_chunk(make_record(thread, generation_count=number))
        warm_up(alice)
        with statements() as sent:
            answer = call(alice, size)
        assert answer.status == 200, answer.raw
        assert len(sent) <= most, sent
        counts.add(len(sent))
        Memory().delete_thread("t")
    assert len(counts) == 1


def warm_up(person: Person) -> Any:
    """Load what is cached for each user, such as permissions."""
    return person.api.get("config")


@pytest.mark.parametrize("count", [2, 20])
def test_get_messages__over_threads_in_one(count: int, statements: Statements, db: None) -> None:
    names = [f"t{n}" for n in range(count)]
    for name in names:
        fill(make_thread("r", name), 3)
    with statements() as sent:
        found = Memory().get_messages([f"{name}:1" for name in names] + ["missing"])
        page = Memory().list_messages(thread_ids=[*names, "missing"], per_page=100)
    assert len(found) == count and page.total == count * 3
    assert len(sent) == 2
