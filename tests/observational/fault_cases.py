"""A conversation for tests of faults, and each operation up to the point at which it is due."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mastra_memory import llm
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import cycle
from mastra_memory.types import StoredThread
from tests.observational import faults
from tests.observational.faults import HeldModel
from tests.observational.world import World
from tests.support.factories import make_thread, text_content, unique
from tests.support.waiting import wait_until

AT_ONCE: dict[str, Any] = {
    "observation": {"messageTokens": 120, "bufferTokens": False},
    "reflection": {"observationTokens": 150},
}
BUFFERING: dict[str, Any] = {
    "observation": {"messageTokens": 400, "bufferTokens": 80, "bufferActivation": 0.8},
    "reflection": {"observationTokens": 600, "bufferActivation": 0.5},
}
OF_RESOURCE = AT_ONCE | {"scope": "resource"}
NO_REFLECTION = {"observationTokens": 9_000}


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

    def answer(self) -> AbstractContextManager[object]:
        """Let the model answer in this process while the block runs."""
        return llm.override_model(self.model.model)

    @property
    def live(self) -> ObservationalRecord:
        """The live record; there is only one."""
        return ObservationalRecord.objects.live().get()

    @property
    def about(self) -> dict[str, str]:
        """The arguments that choose the record."""
        if self.world.scope == "resource":
            return {"resource_id": self.thread.resource_id}
        return {"thread_id": self.thread.id}

    def observe(self) -> None:
        """Observe all messages in this process."""
        with self.answer():
            self.memory.observe(**self.about)

    def run_cycle(self) -> None:
        """Do in this process what is due."""
        cycle.run_due_cycle(self.live.pk)

    def request(self) -> None:
        """Let workers look for work."""
        self.memory.request_observation(**self.about)

    def finish(self) -> None:
        """Wait for the workers, and check that all is well."""
        faults.wait_until_idle(self.world, self.folder)
        faults.check_settled(self.world, self.list_due())


@contextmanager
def new_setting(folder: Path, configure: Callable[..., None]) -> Iterator[Setting]:
    """Make a conversation without messages. `configure` is the fixture `memory_settings`."""
    with faults.held_model() as model:
        configure(OPTIONS={"observationalMemory": AT_ONCE})
        world = World(Memory(), "thread")
        world.model = model.model
        setting = Setting(folder, model, configure, {}, make_thread("alice"), world)
        setting.use(AT_ONCE)
        yield setting


# Each operation, brought to the point at which a worker would begin it


def prepare_observation(setting: Setting) -> str:
    setting.use(AT_ONCE)
    setting.say(12)
    return "observation"


def prepare_observation_of_resource(setting: Setting) -> str:
    setting.use(OF_RESOURCE)
    setting.say(8)
    setting.say(8, make_thread("alice"))
    return "observation"


def prepare_buffering(setting: Setting) -> str:
    setting.use(BUFFERING)
    setting.say(8)
    return "observation"


def prepare_activation(setting: Setting) -> str:
    """Chunks are activated first, then the new messages are observed."""
    setting.use(BUFFERING)
    with setting.answer():
        while not setting.memory.get_observational_status(thread_id=setting.thread.id).chunk_count:
            setting.say(4)
            setting.run_cycle()
    setting.say(24)
    return "observation"


def prepare_reflection(setting: Setting) -> str:
    setting.use(AT_ONCE | {"reflection": NO_REFLECTION})
    setting.say(20)
    setting.observe()
    setting.use(AT_ONCE)
    setting.request()
    return "reflection"


def prepare_reflection_of_resource(setting: Setting) -> str:
    setting.use(OF_RESOURCE | {"reflection": NO_REFLECTION})
    setting.say(12)
    setting.say(12, make_thread("alice"))
    setting.observe()
    setting.use(OF_RESOURCE)
    setting.request()
    return "reflection"


def prepare_buffered_reflection(setting: Setting) -> str:
    setting.use(BUFFERING | {"reflection": BUFFERING["reflection"] | NO_REFLECTION})
    setting.say(25)
    setting.observe()
    setting.use(BUFFERING)
    setting.request()
    return "reflection"


def prepare_activation_of_reflection(setting: Setting) -> str:
    """A prepared reflection replaces the beginning of the log. No model is asked."""
    prepare_buffered_reflection(setting)
    with setting.answer():
        setting.run_cycle()
    assert setting.live.buffered_reflection
    setting.use(BUFFERING | {"reflection": NO_REFLECTION | {"bufferActivation": False}})
    setting.say(25)
    setting.observe()
    setting.use(BUFFERING)
    assert setting.live.buffered_reflection
    setting.request()
    return ""


OPERATIONS: dict[str, Callable[[Setting], str]] = {
    "observation": prepare_observation,
    "observation of a resource": prepare_observation_of_resource,
    "buffering": prepare_buffering,
    "activation": prepare_activation,
    "reflection": prepare_reflection,
    "reflection of a resource": prepare_reflection_of_resource,
    "buffered reflection": prepare_buffered_reflection,
    "activation of a reflection": prepare_activation_of_reflection,
}
"""Each function returns the purpose of the first request to the model, or an empty text."""
RECORDS = "mastra_memory_observationalrecord"
EVENTS = "mastra_memory_observationevent"
LOCKS = {
    "claim": f"SELECT 1 FROM {RECORDS} FOR UPDATE",
    "start": f"LOCK TABLE {EVENTS} IN EXCLUSIVE MODE",
    "activate": "SELECT 1 FROM mastra_memory_thread FOR UPDATE",
    "commit": f"SELECT 1 FROM {RECORDS} FOR UPDATE",
    "end": f"SELECT 1 FROM {EVENTS} WHERE state = 'running' FOR UPDATE",
}
"""Rows that a test locks, so that a worker stops there: at its claim; after it, at the note in the
timeline that the operation begins; at the first write to the thread; at the commit of what a model
has written; and after the commit, at the note that the operation has ended."""
AFTER_THE_MODEL = ("commit", "end")


@contextmanager
def stopped_worker(
    setting: Setting, purpose: str, step: str, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker, and run the block when it has come to this step."""
    with ExitStack() as blocks:
        asks_model = step == "model" or step in AFTER_THE_MODEL
        if asks_model:
            setting.model.hold(purpose)
        else:
            blocks.enter_context(faults.locked_rows(LOCKS[step]))
        process = blocks.enter_context(faults.worker(setting.env(**options), f"stopped-{step}"))
        if asks_model:
            assert setting.model.waiting.wait(60)
        if step in AFTER_THE_MODEL:
            blocks.enter_context(faults.locked_rows(LOCKS[step]))
            setting.model.release()
        if step != "model":
            wait_until(faults.is_blocked, seconds=60)
        yield process
