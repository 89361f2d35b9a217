"""Random sequences of everything that can happen to a conversation and its observations.

`make test` tries a few fixed sequences, `make faults` many: OBSERVATION_EXAMPLES and
OBSERVATION_STEPS say how many and how long.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from mastra_memory import llm
from mastra_memory.db import routing, times
from mastra_memory.exceptions import MastraMemoryError
from mastra_memory.memory import Memory
from mastra_memory.models import Message, ObservationalRecord, Thread
from mastra_memory.observational import claims, cycle, generations
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.work import Work
from tests.observational.world import ANSWERS, World, find_facts
from tests.support.factories import make_thread, moment, text_content, unique

pytestmark = pytest.mark.django_db

EXAMPLES = int(os.environ.get("OBSERVATION_EXAMPLES", "4"))
STEPS = int(os.environ.get("OBSERVATION_STEPS", "20"))
THREAD_OPTIONS: dict[str, Any] = {
    "observation": {"messageTokens": 240, "bufferTokens": 60, "bufferActivation": 0.8},
    "reflection": {"observationTokens": 200, "bufferActivation": 0.5},
}
SYNC_OPTIONS: dict[str, Any] = {
    "observation": {"messageTokens": 120, "bufferTokens": False, "maxTokensPerBatch": 60},
    "reflection": {"observationTokens": 150},
}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "buffering": THREAD_OPTIONS,
    "buffering with groups": THREAD_OPTIONS | {"retrieval": True},
    "at once": SYNC_OPTIONS,
    "resource": SYNC_OPTIONS | {"scope": "resource"},
}
OPERATIONS = (
    "save",
    "save",
    "save_batch",
    "save_elsewhere",
    "edit",
    "update",
    "delete",
    "move",
    "transfer",
    "clone",
    "clear",
    "delete_thread",
    "correct",
    "pin",
    "remove",
    "restore",
    "request",
    "activate_idle",
    "override",
    "claim",
    "expire",
    "work",
    "observe",
    "reflect",
)
Operation = tuple[str, int, int]
operations = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9), st.integers(0, 9))
answers = st.lists(st.sampled_from(["good", *ANSWERS]), max_size=3)


class ObservationMachine(RuleBasedStateMachine):
    """Act on a `World`, in a transaction that is rolled back at the end."""

    options: ClassVar[dict[str, Any]]

    def __init__(self) -> None:
        super().__init__()
        self.blocks = ExitStack()
        chosen = {"OPTIONS": {"observationalMemory": self.options, "semanticRecall": False}}
        self.blocks.enter_context(override_settings(MASTRA_MEMORY=chosen))
        self.transaction = routing.atomic()
        self.blocks.enter_context(self.transaction)
        self.world = World(Memory(), self.options.get("scope", "thread"))
        self.blocks.enter_context(llm.override_model(self.world.model))
        self.memory = self.world.memory
        self.other_agent = Memory(options={"observationalMemory": False})

    @initialize()
    def make_threads(self) -> None:
        for resource_id in ("alice", "alice", "bob"):
            make_thread(resource_id)

    # Rules

    @rule(operation=operations)
    def act(self, operation: Operation) -> None:
        self.apply(operation)

    @rule(count=st.integers(2, 8), thread=st.integers(0, 9))
    def talk(self, count: int, thread: int) -> None:
        for _ in range(count):
            self.apply(("save", thread, 0))

    @rule(
        how=st.sampled_from(["work", "observe", "reflect", "finalize"]),
        subject=st.integers(0, 9),
        answers=answers,
        meanwhile=st.lists(operations, max_size=3),
    )
    def work_on(
        self, how: str, subject: int, answers: list[str], meanwhile: list[Operation]
    ) -> None:
        """Work, while other things happen at the moment in which a model is asked."""
        model = self.world.model
        model.answers = list(answers)
        model.meanwhile = [partial(self.apply_all, meanwhile)]
        try:
            self.apply((how, subject, 0))
        finally:
            model.answers, model.meanwhile = [], []

    @invariant()
    def everything_holds(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        """Let a good model work to the end: every message is observed then."""
        try:
            self.drain()
        finally:
            routing.get_connection().set_rollback(True)
            self.blocks.close()

    def drain(self) -> None:
        self.do_expire(0, 0)
        for key in self.world.list_keys():
            generations.get_or_create_live(key)
            work = self.get_work(key)
            for _ in range(10):
                cycle.run_cycle(work, everything=True)
        self.world.check()
        for key in self.world.list_keys():
            states = self.world.read_states(key)
            assert all(chunk and chunk.activated_at for chunk in states.values())

    # Operations: a name and two numbers that choose what it is about

    def apply_all(self, operations: list[Operation]) -> None:
        for operation in operations:
            self.apply(operation)

    def apply(self, operation: Operation) -> None:
        name, first, second = operation
        act: Callable[[int, int], None] = getattr(self, f"do_{name}")
        try:
            act(first, second)
        except (MastraMemoryError, ZeroDivisionError):
            pass  # Refused, or raised by the model: nothing may have changed.

    def pick_thread(self, choice: int) -> Thread:
        threads = self.world.list_threads()
        if not threads:
            make_thread("alice")
            threads = self.world.list_threads()
        return threads[choice % len(threads)]

    def pick_message(self, choice: int) -> Message | None:
        messages = self.world.list_messages()
        return messages[-1 - choice % len(messages)] if messages else None

    def get_work(self, key: RecordKey) -> Work:
        return Work.build(key, self.memory.options, agent_id=None)

    def subject(self, choice: int) -> dict[str, Any]:
        thread = self.pick_thread(choice)
        if self.world.scope == "thread":
            return {"thread_id": thread.id}
        return {"resource_id": thread.resource_id}

    def build_message(self, thread: Thread, when: int = 0, **fields: Any) -> dict[str, Any]:
        """A new message: now, in the past, or at the time of another message."""
        message_id = unique("m")
        message = {
            "id": message_id,
            "threadId": thread.id,
            "resourceId": thread.resource_id,
            "role": "user" if when % 2 else "assistant",
            "content": text_content(self.world.new_fact(message_id)),
        }
        if 3 <= when <= 5:
            message["createdAt"] = times.format_time(moment(when))
        elif when >= 6 and (other := self.pick_message(when)) is not None:
            message["createdAt"] = times.format_time(other.created_at)
        return message | fields

    def do_save(self, thread: int, when: int) -> None:
        self.memory.save_messages([self.build_message(self.pick_thread(thread), when)])

    def do_save_batch(self, first: int, second: int) -> None:
        threads = [self.pick_thread(number) for number in (first, second, first + 1)]
        self.memory.save_messages([self.build_message(thread, second) for thread in threads])

    def do_save_elsewhere(self, thread: int, _: int) -> None:
        """Save with an agent that does not observe. Its messages are newer than all others."""
        newest = Message.objects.order_by("-created_at").first()
        after = max(filter(None, (newest and newest.created_at, times.now())))
        created_at = times.format_time(after + timedelta(milliseconds=5))
        message = self.build_message(self.pick_thread(thread), createdAt=created_at)
        self.other_agent.save_messages([message])

    def change(self, message: Message) -> dict[str, Any]:
        text = self.world.new_fact(message.id, self.world.number_of(message.id))
        return {"id": message.id, "content": text_content(text)}

    def do_edit(self, choice: int, _: int) -> None:
        if (message := self.pick_message(choice)) is not None:
            place = {"threadId": message.thread_id, "resourceId": message.resource_id}
            created_at = times.format_time(message.created_at)
            self.memory.save_messages(
                [self.change(message) | place | {"role": message.role, "createdAt": created_at}]
            )

    def do_update(self, choice: int, _: int) -> None:
        if (message := self.pick_message(choice)) is not None:
            self.memory.update_messages([self.change(message)])

    def do_delete(self, choice: int, _: int) -> None:
        if (message := self.pick_message(choice)) is not None:
            self.memory.delete_messages([message.id])

    def do_move(self, choice: int, target: int) -> None:
        message, thread = self.pick_message(choice), self.pick_thread(target)
        if message is not None and message.thread_id != thread.id:
            self.world.moved.add(self.world.number_of(message.id))
            self.memory.update_messages(
                [{"id": message.id, "threadId": thread.id, "resourceId": thread.resource_id}]
            )

    def do_transfer(self, choice: int, target: int) -> None:
        thread = self.pick_thread(choice)
        if self.world.scope == "resource":
            for message in thread.messages.all():
                self.world.moved.add(self.world.number_of(message.id))
        self.memory.transfer_thread(thread.id, ("alice", "bob", "carol")[target % 3])

    def do_clone(self, choice: int, target: int) -> None:
        source = self.pick_thread(choice)
        if len(self.world.list_threads()) >= 6:
            return
        owner = (source.resource_id, "alice", "bob")[target % 3]
        originals = list(source.messages.order_by("created_at", "sequence"))
        result = self.memory.clone_thread(source.id, resource_id=owner)
        copies = Message.objects.filter(thread_id=result.thread.id)
        for original, copy in zip(
            originals, copies.order_by("created_at", "sequence"), strict=True
        ):
            self.world.facts[copy.id] = set(self.world.facts[original.id])
            self.world.copies[self.world.number_of(original.id)] += 1

    def do_clear(self, choice: int, chance: int) -> None:
        if chance < 4:
            self.memory.clear_observations(**self.subject(choice))

    def do_delete_thread(self, choice: int, chance: int) -> None:
        if chance < 4:
            self.memory.delete_thread(self.pick_thread(choice).id)

    def pick_observation(self, subject: dict[str, str], choice: int) -> str:
        entries = self.memory.list_observations(**subject)
        return entries[choice % len(entries)].id if entries else "0.0"

    def do_correct(self, choice: int, which: int) -> None:
        subject = self.subject(choice)
        address = self.pick_observation(subject, which)
        entries = {entry.id: entry for entry in self.memory.list_observations(**subject)}
        if address in entries:
            text = f"{entries[address].item.text} (corrected)"
            self.memory.edit_observation(address, text, user_name="ann", **subject)

    def do_pin(self, choice: int, which: int) -> None:
        subject = self.subject(choice)
        address = self.pick_observation(subject, which)
        self.memory.pin_observation(address, pinned=which % 3 > 0, user_name="ann", **subject)

    def do_remove(self, choice: int, which: int) -> None:
        subject = self.subject(choice)
        before = find_facts(self.memory.get_observations(**subject))
        address = self.pick_observation(subject, which)
        self.memory.delete_observation(address, user_name="ann", **subject)
        self.world.removed |= set(before - find_facts(self.memory.get_observations(**subject)))

    def do_restore(self, choice: int, generation: int) -> None:
        subject = self.subject(choice)
        before = set(find_facts(self.memory.get_observations(**subject)))
        self.memory.restore_observations(generation, user_name="ann", **subject)
        after = set(find_facts(self.memory.get_observations(**subject)))
        assert before <= after, "what was observed since is kept"

    def do_request(self, choice: int, _: int) -> None:
        self.memory.request_observation(**self.subject(choice))

    def do_activate_idle(self, choice: int, _: int) -> None:
        work = self.get_work(self.world.key_of(self.pick_thread(choice)))
        cycle.activate_all(work, triggered_by="ttl")

    def do_override(self, choice: int, size: int) -> None:
        config = {"observation": {"messageTokens": 150 + 40 * size}}
        self.memory.update_observational_memory_config(config, **self.subject(choice))

    def do_claim(self, choice: int, which: int) -> None:
        """Another worker begins to work, and is never heard of again."""
        record = generations.find_live(self.world.key_of(self.pick_thread(choice)))
        if record is not None and which % 2:
            claims.claim_observing(record, "observing")
        elif record is not None:
            claims.claim_reflecting(record, "reflecting")

    def do_expire(self, _: int, __: int) -> None:
        past = times.now() - timedelta(seconds=1)
        ObservationalRecord.objects.exclude(lease_token=None).update(lease_expires_at=past)
        ObservationalRecord.objects.exclude(reflection_token=None).update(
            reflection_expires_at=past
        )

    def do_work(self, _: int, __: int) -> None:
        for record_id in claims.list_due_records():
            cycle.run_due_cycle(record_id)

    def do_observe(self, choice: int, _: int) -> None:
        self.memory.observe(**self.subject(choice))

    def do_reflect(self, choice: int, _: int) -> None:
        self.memory.reflect(**self.subject(choice))

    def do_finalize(self, choice: int, _: int) -> None:
        self.memory.finalize_observations(**self.subject(choice))


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_observations__survive_any_sequence(configuration: str) -> None:
    machine = type("Machine", (ObservationMachine,), {"options": CONFIGURATIONS[configuration]})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize="OBSERVATION_EXAMPLES" not in os.environ,
            suppress_health_check=list(HealthCheck),
        ),
    )
