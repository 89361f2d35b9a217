"""Workers that are killed, a database that goes away, and a model that fails: nothing is lost.

`make test` kills at a few steps, `make faults` at each step of each operation.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mastra_memory import llm
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, ObservationEvent
from mastra_memory.observational import claims, cycle
from mastra_memory.types import StoredThread
from tests.observational import faults
from tests.observational.faults import HeldModel
from tests.observational.world import DEGENERATE, World
from tests.support.factories import make_thread, text_content, unique
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ALL = os.environ.get("MEASURED_BUDGETS") == "1"
AT_ONCE: dict[str, Any] = {
    "observation": {"messageTokens": 120, "bufferTokens": False},
    "reflection": {"observationTokens": 150},
}
BUFFERING: dict[str, Any] = {
    "observation": {"messageTokens": 400, "bufferTokens": 80, "bufferActivation": 0.8},
    "reflection": {"observationTokens": 600, "bufferActivation": 0.5},
}
RECORDS = "mastra_memory_observationalrecord"
EVENTS = "mastra_memory_observationevent"


@dataclass
class Setting:
    """A conversation, the options of its agent, and the model of the workers."""

    folder: Path
    model: HeldModel
    configure: Callable[..., None]
    options: dict[str, Any]
    thread: StoredThread
    world: World

    @property
    def memory(self) -> Memory:
        return self.world.memory

    def use(self, options: dict[str, Any]) -> None:
        """Set the options of the agent."""
        self.options = {"observationalMemory": options, "semanticRecall": False}
        self.configure(OPTIONS=self.options)
        self.world.memory = Memory()
        self.world.scope = options.get("scope", "thread")

    def say(self, count: int, thread: StoredThread | None = None) -> None:
        """Save messages in one batch."""
        thread = thread or self.thread
        ids = [unique("m") for _ in range(count)]
        self.memory.save_messages(
            [
                {
                    "id": message_id,
                    "threadId": thread.id,
                    "resourceId": thread.resource_id,
                    "role": "user",
                    "content": text_content(self.world.new_fact(message_id)),
                }
                for message_id in ids
            ]
        )

    def env(self, **options: Any) -> dict[str, str]:
        """The environment of a worker."""
        return faults.build_environment(self.folder, self.model, self.options, **options)

    def list_due(self) -> list[str]:
        """Return what is due according to the thresholds, with the figures."""
        status = self.memory.get_observational_status(
            thread_id=self.thread.id, resource_id=self.thread.resource_id
        )
        record = status.record
        figures = f"{status.pending_tokens} pending, {status.observation_tokens} in the log"
        due = {"observe": status.should_observe, "buffer": status.should_buffer}
        # A log that the model could not make shorter is not given to it again.
        unproductive = record.unproductive_reflection_tokens if record else None
        due["reflect"] = status.should_reflect and unproductive != status.observation_tokens
        return [f"{name}: {figures}, {unproductive}" for name, is_due in due.items() if is_due]

    def finish(self) -> None:
        """Wait for the workers, and check that all is well."""
        faults.wait_until_idle(self.world, self.folder)
        faults.check_settled(self.world, self.list_due())


@pytest.fixture
def setting(tmp_path: Path, memory_settings: Callable[..., None]) -> Iterator[Setting]:
    """A conversation without messages."""
    with faults.held_model() as model:
        memory_settings(OPTIONS={"observationalMemory": AT_ONCE})
        world = World(Memory(), "thread")
        world.model = model.model
        made = Setting(tmp_path, model, memory_settings, {}, make_thread("alice"), world)
        made.use(AT_ONCE)
        yield made


# Each operation, brought to the point at which a worker would begin it


def prepare_observation(setting: Setting) -> str:
    setting.use(AT_ONCE)
    setting.say(12)
    return "observation"


def prepare_observation_of_resource(setting: Setting) -> str:
    setting.use(AT_ONCE | {"scope": "resource"})
    other = make_thread("alice")
    setting.say(8)
    setting.say(8, other)
    return "observation"


def prepare_buffering(setting: Setting) -> str:
    setting.use(BUFFERING)
    setting.say(8)
    return "observation"


def prepare_activation(setting: Setting) -> str:
    setting.use(BUFFERING)
    with llm.override_model(setting.model.model):
        while not setting.memory.get_observational_status(thread_id=setting.thread.id).chunk_count:
            setting.say(4)
            cycle.run_due_cycle(ObservationalRecord.objects.live().get().pk)
    setting.say(24)
    return "observation"


def prepare_reflection(setting: Setting) -> str:
    setting.use(AT_ONCE | {"reflection": {"observationTokens": 9_000}})
    setting.say(20)
    with llm.override_model(setting.model.model):
        setting.memory.observe(thread_id=setting.thread.id)
    setting.use(AT_ONCE)
    setting.memory.request_observation(thread_id=setting.thread.id)
    return "reflection"


def prepare_buffered_reflection(setting: Setting) -> str:
    large = BUFFERING["reflection"] | {"observationTokens": 9_000}
    setting.use(BUFFERING | {"reflection": large})
    setting.say(25)
    with llm.override_model(setting.model.model):
        setting.memory.observe(thread_id=setting.thread.id)
    setting.use(BUFFERING)
    setting.memory.request_observation(thread_id=setting.thread.id)
    return "reflection"


OPERATIONS: dict[str, Callable[[Setting], str]] = {
    "observation": prepare_observation,
    "observation of a resource": prepare_observation_of_resource,
    "buffering": prepare_buffering,
    "activation": prepare_activation,
    "reflection": prepare_reflection,
    "buffered reflection": prepare_buffered_reflection,
}
STEPS = ("claim", "start", "model", "commit", "end")
CASES = [
    (operation, step)
    for operation in OPERATIONS
    for step in STEPS
    if ALL or (operation, step) in {("buffering", "commit"), ("reflection", "model")}
]


def stop_at(step: str, purpose: str, setting: Setting, blocks: ExitStack) -> None:
    """Wait until the worker that runs has come to this step.

    `start` and `end` are the notes in the timeline before and after the model is asked.
    """
    if step in ("commit", "end"):
        setting.model.waiting.wait(60)
        table = RECORDS if step == "commit" else EVENTS
        condition = "" if step == "commit" else "WHERE state = 'running'"
        blocks.enter_context(faults.locked_rows(f"SELECT 1 FROM {table} {condition} FOR UPDATE"))
        setting.model.release()
    if step == "model":
        assert setting.model.waiting.wait(60)
    else:
        wait_until(faults.is_blocked, seconds=60)


@pytest.mark.parametrize(("operation", "step"), CASES)
def test_kill__loses_nothing(setting: Setting, operation: str, step: str) -> None:
    purpose = OPERATIONS[operation](setting)
    assert claims.list_due_records()
    with ExitStack() as blocks:
        if step == "claim":
            blocks.enter_context(faults.locked_rows(f"SELECT 1 FROM {RECORDS} FOR UPDATE"))
        elif step == "start":
            blocks.enter_context(faults.locked_rows(f"LOCK TABLE {EVENTS} IN EXCLUSIVE MODE"))
        else:
            setting.model.hold(purpose)
        with faults.worker(setting.env(), "killed") as first:
            stop_at(step, purpose, setting, blocks)
            faults.kill(first)
    setting.model.release()
    setting.world.check()
    with faults.worker(setting.env(), "second"):
        setting.finish()


def test_two_workers__do_nothing_twice(setting: Setting) -> None:
    setting.use(BUFFERING)
    threads = [setting.thread, *(make_thread("alice") for _ in range(5 if ALL else 2))]
    with (
        faults.worker(setting.env(), "first"),
        faults.worker(setting.env(), "second"),
    ):
        for _ in range(12 if ALL else 4):
            for thread in threads:
                setting.say(4, thread)
            time.sleep(0.5)
        setting.finish()
    requests = [facts for facts in setting.model.asked if facts]
    assert sum(map(len, requests)) == len(set().union(*requests)), "a message was read twice"
    assert not ObservationEvent.objects.exclude(state="done").exists()


def test_database__comes_back_and_the_work_goes_on(setting: Setting) -> None:
    prepare_observation(setting)
    setting.model.hold("observation")
    with faults.worker(setting.env(), "worker") as process:
        assert setting.model.waiting.wait(60)
        with faults.database_away():
            setting.model.release()
            time.sleep(3.0)
        setting.say(12)
        setting.finish()
        assert process.poll() is None, "the worker survives"


@pytest.mark.skipif(not ALL, reason="waits for the time after which a failure is tried again")
@pytest.mark.parametrize("failure", ["hangs", "500", "401", "empty", "degenerate", "garbage"])
def test_model__that_fails_is_asked_again(setting: Setting, failure: str) -> None:
    operation = prepare_observation if failure != "empty" else prepare_reflection
    purpose = operation(setting)
    entries: dict[str, Any] = {
        "500": [500] * 10,
        "401": [401],
        "empty": ["<observations>\n</observations>"] * 4,
        "degenerate": [DEGENERATE] * 2,
        "garbage": [{"tool": "unknown", "args": {}}],
    }
    setting.model.scripted = entries.get(failure, [])
    if failure == "hangs":
        setting.model.hold(purpose)
    with faults.worker(setting.env(timeout=3.0), "worker"):
        wait_until(lambda: ObservationEvent.objects.filter(state="failed").exists())
        setting.world.check()
        setting.say(3)  # A save succeeds while the model fails.
        setting.model.scripted = []
        setting.model.release()
        setting.finish()
    assert ObservationEvent.objects.filter(state="done").exists()
