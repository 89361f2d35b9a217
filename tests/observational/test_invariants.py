"""Random sequences of saves, edits, deletions, moves, work and failures keep the invariants.

After each step: one live record per thread, generations without gaps, the tokens of the log
counted again, chunks at the live record, each message in one chunk at most. The cursor never moves
backwards. At the end everything is observed exactly once.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mastra_memory import llm
from mastra_memory.exceptions import MastraMemoryError, ProviderUnavailable
from mastra_memory.memory import Memory
from mastra_memory.models import (
    Message,
    MessageObservation,
    ObservationalRecord,
    ObservationChunk,
    Thread,
)
from mastra_memory.observational import claims, cycle, tracking
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.work import Work
from tests.observational.engine import FakeObserver, check_invariants, do_due_work, words
from tests.support.factories import a_message, make_thread, text_content

OPTIONS = {
    "observation": {"messageTokens": 600, "bufferTokens": 150, "bufferActivation": 0.8},
    "reflection": {"observationTokens": 300},
}
indexes = st.integers(0, 1_000)
sizes = st.sampled_from([5, 60, 200, 900])


class ObservationMachine(RuleBasedStateMachine):
    """Two threads of one resource, and what people, agents and workers do with them."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory()
        self.model = FakeObserver()
        self.cursors: dict[str, datetime] = {}
        self.generations: dict[str, int] = {}
        self.clones = 0

    @initialize(turns=st.integers(3, 12))
    def begin(self, turns: int) -> None:
        """Two conversations that are partly observed."""
        self.threads = [make_thread("alice", f"t{number}") for number in range(2)]
        for thread in self.threads:
            self.talk_in(thread, turns, 70)

    def teardown(self) -> None:
        if hasattr(self, "threads"):
            self.drain()

    def pick(self, index: int) -> Any:
        return self.threads[index % len(self.threads)]

    def pick_message(self, index: int) -> Any:
        ids = list(Message.objects.order_by("sequence").values_list("id", "thread_id"))
        return ids[index % len(ids)] if ids else None

    def act(self, function: Callable[[], object]) -> None:
        """Do something that a worker or a person may do; refusals change nothing."""
        with llm.override_model(self.model):
            try:
                function()
            except MastraMemoryError:
                pass

    @rule(index=indexes, tokens=sizes, back=st.sampled_from([0, 0, 0, 500]))
    def save(self, index: int, tokens: int, back: int) -> None:
        thread, number = self.pick(index), Message.objects.count()
        message = a_message(thread, text=words(tokens), at=1_000 + number - back)
        self.memory.save_messages([message])

    @rule(index=indexes, turns=st.integers(1, 8), tokens=st.sampled_from([40, 90]))
    def talk(self, index: int, turns: int, tokens: int) -> None:
        self.talk_in(self.pick(index), turns, tokens)

    def talk_in(self, thread: Any, turns: int, tokens: int) -> None:
        """Some turns, each with the work that follows."""
        for _ in range(turns):
            at = 1_000 + Message.objects.count()
            self.memory.save_messages([a_message(thread, text=words(tokens), at=at)])
            self.act(do_due_work)

    @rule(index=indexes, tokens=sizes)
    def edit(self, index: int, tokens: int) -> None:
        if found := self.pick_message(index):
            self.memory.update_messages([{"id": found[0], "content": text_content(words(tokens))}])

    @rule(index=indexes)
    def delete(self, index: int) -> None:
        if found := self.pick_message(index):
            self.memory.delete_messages([found[0]])

    @rule(index=indexes, to=indexes)
    def move(self, index: int, to: int) -> None:
        found, thread = self.pick_message(index), self.pick(to)
        if found and thread.resource_id == "alice":
            row = a_message(thread, found[0], text=words(30))
            self.act(lambda: self.memory.save_messages([row]))

    @rule()
    def work(self) -> None:
        self.act(do_due_work)

    @rule(index=indexes)
    def fail(self, index: int) -> None:
        self.model.answers = [ProviderUnavailable("away")]
        self.act(do_due_work)
        self.model.answers = []
        ObservationalRecord.objects.live().exclude(error="").update(attempts=0)

    @rule(answer=st.sampled_from(["", "nonsense", "abc " * 600]))
    def answer_nonsense(self, answer: str) -> None:
        self.model.answers = [answer] * 2
        self.act(do_due_work)
        self.model.answers = []
        ObservationalRecord.objects.live().exclude(error="").update(attempts=0)

    @rule(index=indexes)
    def lose_claim(self, index: int) -> None:
        """A worker is killed in the middle; its lease passes."""
        record = ObservationalRecord.objects.live().filter(thread_id=self.pick(index).id).first()
        if record is not None and claims.claim_observing(record, "observing"):
            ObservationalRecord.objects.live().filter(pk=record.pk).update(
                lease_expires_at="2024-01-01T00:00:00Z"
            )

    @rule(index=indexes)
    def observe(self, index: int) -> None:
        self.act(lambda: self.memory.observe(thread_id=self.pick(index).id))

    @rule(index=indexes)
    def activate(self, index: int) -> None:
        thread = self.pick(index)
        key = RecordKey.about_thread(thread.id, thread.resource_id)
        job = Work.build(key, self.memory.options, agent_id=None)
        self.act(lambda: cycle.activate_all(job, triggered_by="manual"))

    @rule(index=indexes)
    def reflect(self, index: int) -> None:
        self.act(lambda: self.memory.reflect(thread_id=self.pick(index).id))

    @rule(index=indexes, line=indexes, action=st.sampled_from(["edit", "pin", "delete"]))
    def correct(self, index: int, line: int, action: str) -> None:
        about = {"thread_id": self.pick(index).id}
        entries = self.memory.list_observations(**about)
        if not entries:
            return
        address = entries[line % len(entries)].id
        if action == "edit":
            self.memory.edit_observation(address, words(5), **about)
        elif action == "pin":
            self.memory.pin_observation(address, **about)
        else:
            self.memory.delete_observation(address, **about)

    @rule(index=indexes, generation=st.integers(0, 3))
    def restore(self, index: int, generation: int) -> None:
        about = {"thread_id": self.pick(index).id}
        self.act(lambda: self.memory.restore_observations(generation, **about))

    @precondition(lambda self: self.clones < 2)
    @rule(index=indexes)
    def clone(self, index: int) -> None:
        self.clones += 1
        result = self.memory.clone_thread(self.pick(index).id, clone_id=f"clone{self.clones}")
        self.threads.append(result.thread)

    @rule(index=indexes)
    def transfer(self, index: int) -> None:
        thread = self.pick(index)
        target = "bob" if thread.resource_id == "alice" else "alice"
        moved = self.memory.transfer_thread(thread.id, target)
        self.threads[self.threads.index(thread)] = moved

    @invariant()
    def holds(self) -> None:
        check_invariants()
        for record in ObservationalRecord.objects.live():
            key, cursor = str(record.thread_id), record.last_observed_at
            assert record.generation_count >= self.generations.get(key, 0)
            self.generations[key] = record.generation_count
            if key in self.cursors:
                assert cursor is not None and cursor >= self.cursors[key]
            if cursor is not None:
                self.cursors[key] = cursor

    def drain(self) -> None:
        """Without a person, everything that is tracked is observed once, and never again."""
        ObservationalRecord.objects.update(lease_expires_at=None, lease_token=None,
                                           lease_operation="")  # fmt: skip
        with llm.override_model(self.model):
            for thread in Thread.objects.all():
                self.memory.observe(thread_id=thread.id)
        for thread in Thread.objects.all():
            key = RecordKey.about_thread(thread.id, thread.resource_id)
            pending = tracking.count_pending(key)
            assert (pending.messages, pending.uncounted) == (0, 0)
            rows = MessageObservation.objects.filter(thread_id=thread.id)
            unactivated = rows.filter(chunk__activated_at=None)
            assert not unactivated.exists()
        ids = [key for chunk in ObservationChunk.objects.all() for key in chunk.message_ids]
        stored = set(Message.objects.values_list("id", flat=True))
        observed = set(MessageObservation.objects.values_list("message_id", flat=True))
        assert observed <= stored and observed & stored <= set(ids)
        check_invariants()


@pytest.mark.slow
@pytest.mark.django_db
def test_random_sequences__keep_the_invariants(memory_settings: Callable[..., None]) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    memory_settings(OPTIONS={"observationalMemory": OPTIONS})

    class InTransaction(ObservationMachine):
        """Each sequence runs in a savepoint of its own, which is rolled back."""

        def __init__(self) -> None:
            self.savepoint = connection.savepoint()
            super().__init__()

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                if self.savepoint is not None:
                    connection.savepoint_rollback(self.savepoint)

    run_state_machine_as_test(
        InTransaction,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
