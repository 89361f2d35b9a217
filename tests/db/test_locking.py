"""Concurrent writers: the order of locks, and the retry of conflicts."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from mastra_memory import messages
from mastra_memory.db import locking, sql
from mastra_memory.embedding import indexing
from mastra_memory.exceptions import ConcurrentUpdate, MastraMemoryError, ThreadNotFound
from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest, Message, MessageEmbedding
from mastra_memory.testing import FakeEmbedder
from tests.support.concurrency import concurrently
from tests.support.factories import make_thread, some_messages
from tests.support.waiting import MAX_WAIT_SECONDS, wait_until

THREADS = [f"t{number}" for number in range(6)]
MESSAGES = [f"m{number}" for number in range(60)]
MAX_SENDS = 20
"""How often a client sends a write that fails with `ConcurrentUpdate`."""
MAX_DEADLOCKS_PER_WRITE = 0.05
"""A cascading delete locks messages in any order, so that a few deadlocks can happen and are
retried. If saves lock threads in random order, writes even fail after all their attempts."""
EMBEDDED: dict[str, Any] = {
    "semanticRecall": True,
    "workingMemory": {"enabled": True, "scope": "thread"},
}


def message(message_id: str, thread_id: str, text: str = "") -> dict[str, Any]:
    """Return a message of alice as clients send it."""
    return {
        "id": message_id,
        "threadId": thread_id,
        "resourceId": "alice",
        "role": "user",
        "content": text or f"Text {random.random()}",
    }


def count_deadlocks() -> int:
    """Return the number of deadlocks that PostgreSQL has counted in this database."""
    row = sql.fetch_one(
        "SELECT deadlocks FROM pg_stat_get_db_deadlocks((SELECT oid FROM pg_database"
        " WHERE datname = current_database())) AS deadlocks"
    )
    assert row is not None
    return int(row[0])


@pytest.fixture
def no_deadlock() -> Iterator[None]:
    """Fail if PostgreSQL had to end a deadlock during the test."""
    before = count_deadlocks()
    yield
    sql.fetch_one("SELECT pg_stat_clear_snapshot()")
    assert count_deadlocks() == before


class Writer:
    """Random writes over a few threads and messages."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.memory = Memory(options=EMBEDDED)
        self.done: Counter[str] = Counter()
        self.errors: list[str] = []

    def run(self, seed: int) -> None:
        """Write in random order. Collect the errors that a caller should not get."""
        choices = random.Random(seed)
        for _ in range(self.rounds):
            action = choices.choice(self.actions())
            try:
                self.write(action, choices)
                self.done[action.__name__] += 1
            except (MastraMemoryError, OperationalError, IntegrityError) as error:
                self.errors.append(f"{action.__name__}: {type(error).__name__}: {error}"[:400])

    def write(self, action: Callable[[random.Random], object], choices: random.Random) -> None:
        """Run the action like a client that sends conflicting writes again.

        On a busy machine, a write can conflict with others in every attempt of the app.
        """
        for _ in range(MAX_SENDS):
            try:
                action(choices)
                return
            except ConcurrentUpdate as error:
                if "deadlock" in str(error.__cause__):
                    self.errors.append(f"{action.__name__}: {error.__cause__}"[:400])
            except ThreadNotFound:
                self.write(self.create_thread, choices)
        raise ConcurrentUpdate

    def actions(self) -> list[Callable[[random.Random], object]]:
        """Return the writes to choose from; saving is twice as likely as the others."""
        return [
            self.save,
            self.save,
            self.update,
            self.delete,
            self.clone,
            self.delete_thread,
            self.update_working_memory,
            self.update_thread,
            self.embed,
        ]

    def create_thread(self, choices: random.Random) -> None:
        """Create one of the threads again, unless another writer has done so."""
        self.memory.create_thread("alice", thread_id=choices.choice(THREADS))

    def save(self, choices: random.Random) -> None:
        """Save to two threads; messages of others move there."""
        batch = [
            message(message_id, choices.choice(THREADS))
            for message_id in choices.sample(MESSAGES, 6)
        ]
        self.memory.save_messages(batch)

    def update(self, choices: random.Random) -> None:
        """Change messages of several threads."""
        ids = choices.sample(MESSAGES, 4)
        self.memory.update_messages(
            [{"id": message_id, "content": f"{choices.random()}"} for message_id in ids]
        )

    def delete(self, choices: random.Random) -> None:
        """Delete messages of several threads."""
        self.memory.delete_messages(choices.sample(MESSAGES, 4))

    def clone(self, choices: random.Random) -> None:
        """Copy a thread, and delete the copy."""
        clone = self.memory.copy_thread(choices.choice(THREADS)).thread
        self.memory.delete_thread(clone.id)

    def delete_thread(self, choices: random.Random) -> None:
        """Delete a thread that others write to."""
        thread_id = choices.choice(THREADS)
        self.memory.delete_thread(thread_id)
        self.memory.create_thread("alice", thread_id=thread_id)

    def update_working_memory(self, choices: random.Random) -> None:
        """Write the working memory of a thread."""
        self.memory.update_working_memory(choices.choice(THREADS), f"{choices.random()}")

    def update_thread(self, choices: random.Random) -> None:
        """Change a thread itself."""
        self.memory.update_thread(choices.choice(THREADS), metadata={"n": choices.random()})

    def embed(self, choices: random.Random) -> None:
        """Do the work of a Celery worker."""
        indexing.embed_pending(seconds=1)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_writers__mixed_writes_end_without_errors() -> None:
    for thread_id in THREADS:
        make_thread("alice", thread_id)
    before = count_deadlocks()
    writer = Writer(rounds=60)
    with FakeEmbedder():
        concurrently(writer.run, list(range(8)))
    sql.fetch_one("SELECT pg_stat_clear_snapshot()")
    assert not writer.errors
    # A cascading delete locks messages in any order, so a few deadlocks are possible.
    assert count_deadlocks() - before <= 2
    assert set(writer.done) == {action.__name__ for action in writer.actions()}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_deadlock")
def test_save_and_delete__lock_threads_in_one_order() -> None:
    make_thread("alice", "a")
    make_thread("alice", "b")
    ids = [f"m{number}" for number in range(20)]
    memory = Memory()

    def act(kind: str) -> None:
        choices = random.Random(kind)
        for _ in range(60):
            choices.shuffle(ids)
            if kind.startswith("save"):
                memory.save_messages(
                    [message(message_id, choices.choice("ab")) for message_id in [*ids]]
                )
            else:
                memory.delete_messages([*ids])

    concurrently(act, ["save 1", "save 2", "delete 1", "delete 2"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_writers__are_run_again_at_stricter_isolation_levels(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = connection.settings_dict["OPTIONS"]
    default = f"-c default_transaction_isolation={level.replace(' ', chr(92) + ' ')}"
    monkeypatch.setitem(options, "options", f"{options.get('options', '')} {default}")
    memory = Memory(options=EMBEDDED)
    make_thread("alice", "t")

    def act(number: int) -> None:
        assert sql.fetch_one("SHOW transaction_isolation") == (level,)
        for turn in range(5):
            memory.save_messages([message(f"m{number}-{turn}", "t")])
            memory.update_thread("t", metadata={f"k{number}-{turn}": turn})

    concurrently(act, [1, 2])
    assert Message.objects.count() == 10
    thread = memory.get_thread("t")
    assert len(thread.metadata or {}) == 10


@pytest.mark.django_db(transaction=True)
def test_save_messages__tries_again_if_a_message_moves_meanwhile() -> None:
    for name in "abc":
        make_thread("alice", name)
    memory = Memory()
    memory.save_messages([message("m", "a", "first")])

    moved = threading.Event()

    def is_other_waiting() -> bool:
        sql.fetch_one("SELECT pg_stat_clear_snapshot()")
        waiting = """SELECT count(*) FROM pg_stat_activity
            WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"""
        return sql.fetch_all(waiting) != [(0,)]

    def act(kind: str) -> None:
        if kind == "move":
            with transaction.atomic():
                memory.save_messages([message("m", "c", "moved")])
                moved.set()
                wait_until(is_other_waiting)
        else:
            assert moved.wait(MAX_WAIT_SECONDS)
            memory.save_messages([message("m", "b", "last")])

    concurrently(act, ["move", "save"])
    stored = Message.objects.get(pk="m")
    assert (stored.thread_id, stored.text) == ("b", "last")


@pytest.mark.django_db(transaction=True)
def test_clone_thread__copies_of_moving_messages_get_vectors() -> None:
    memory = Memory(options=EMBEDDED)
    make_thread("alice", "source")
    make_thread("alice", "other")
    source = memory.get_thread("source")

    def act(kind: str) -> None:
        choices = random.Random(kind)
        for _ in range(40):
            if kind == "move":
                targets = [choices.choice(["source", "other"]) for _ in range(20)]
                batch = [message(f"m{n}", to, f"Text {n}") for n, to in enumerate(targets)]
                memory.save_messages(batch)
            else:
                memory.copy_thread("source")

    memory.save_messages(some_messages(source, 20))
    with FakeEmbedder():
        indexing.embed_pending(seconds=30)
        concurrently(act, ["move", "clone"])
    provided = set(MessageEmbedding.objects.values_list("message_id", flat=True))
    provided |= set(EmbeddingRequest.objects.values_list("message_id", flat=True))
    assert set(Message.objects.values_list("pk", flat=True)) - provided == set()


def raise_state(state: str) -> None:
    """Let PostgreSQL raise an error with this SQLSTATE."""
    sql.execute(f"DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{state}'; END $$")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("state", sorted(locking.CONFLICT_STATES))
def test_retry_conflicts__runs_the_function_again_a_few_times(state: str) -> None:
    attempts = []

    @locking.retry_conflicts
    def act(failures: int) -> str:
        with transaction.atomic():
            attempts.append(failures)
            if len(attempts) <= failures:
                raise_state(state)
            return "done"

    assert act(2) == "done"
    assert len(attempts) == 3
    attempts.clear()
    with pytest.raises(ConcurrentUpdate, match="may be sent again"):
        act(100)
    assert len(attempts) == locking.MAX_ATTEMPTS


@pytest.mark.django_db(transaction=True)
def test_retry_conflicts__leaves_other_errors_alone() -> None:
    attempts = []

    @locking.retry_conflicts
    def act() -> None:
        attempts.append(1)
        raise_state("53100")

    with pytest.raises(OperationalError):
        act()
    assert len(attempts) == 1


@pytest.mark.django_db(transaction=True)
def test_retry_conflicts__raises_at_once_inside_a_transaction() -> None:
    attempts = []

    @locking.retry_conflicts
    def act() -> None:
        attempts.append(1)
        raise_state("40P01")

    with pytest.raises(ConcurrentUpdate) as caught, transaction.atomic():
        act()
    assert len(attempts) == 1
    assert isinstance(caught.value.__cause__, OperationalError)


@pytest.mark.django_db
def test_lock_threads__returns_the_resources_of_known_threads() -> None:
    make_thread("alice", "a")
    make_thread("bob", "b")
    assert locking.lock_threads(["b", "missing", "a", "a"]) == {"a": "alice", "b": "bob"}
    assert messages.get_messages([]) == []
