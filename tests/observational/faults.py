"""Real workers, a model that stops when a test wants it to, and a database that goes away."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection, connections

from mastra_memory import llm
from mastra_memory.models import ObservationalRecord, ObservationEvent
from tests.observational.world import ANSWERS, FactModel, World, find_facts
from tests.support import live_server, servers
from tests.support.interruption import connect_to_test_database
from tests.support.openai_server import openai_server
from tests.support.waiting import wait_until

REJECTED = [ANSWERS[name] for name in ("empty", "no observations", "degenerate")]
"""Answers that are never taken for observations. Others may be, so that facts are lost."""
WORKER_COMMAND = (
    *("-m", "celery", "--quiet", "-A", "project", "worker", "-l", "ERROR"),
    *("--pool", "solo", "--without-gossip", "--without-mingle", "--beat", "--schedule"),
)


@dataclass
class HeldModel:
    """A model behind an OpenAI-compatible API that stops at requests until it may go on.

    Attributes:
        url: Where it is.
        asked: The facts of each request about new messages.
        held: Which requests stop: `observation`, `reflection`, or none.
    """

    url: str = ""
    model: FactModel = field(default_factory=FactModel)
    asked: list[set[tuple[int, int]]] = field(default_factory=list)
    held: str = ""
    waiting: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)
    scripted: list[Any] = field(default_factory=list)

    def answer(self, request: dict[str, Any]) -> Any:
        """Return what the model writes, or the next scripted entry."""
        prompt = "\n".join(_read_text(message["content"]) for message in request["messages"])
        purpose = "reflection" if "\n<observation-log>\n" in prompt else "observation"
        if purpose == self.held:
            self.waiting.set()
            self.may_answer.wait()
        if purpose == "observation":
            self.asked.append(set(find_facts(prompt.rpartition("<new-messages>")[2])))
        if self.scripted:
            entry = self.scripted.pop(0)
            if isinstance(entry, str) and entry not in REJECTED:
                self.model.unreliable |= set(find_facts(prompt))
            return entry
        kind = llm.Purpose.REFLECTION if purpose == "reflection" else llm.Purpose.OBSERVATION
        return self.model(llm.TextRequest(purpose=kind, instructions="", prompt=prompt)).text

    def hold(self, purpose: str) -> None:
        """Stop at the next request for this purpose."""
        self.waiting.clear()
        self.may_answer.clear()
        self.held = purpose

    def release(self) -> None:
        """Answer what waits, and do not stop any more."""
        self.held = ""
        self.may_answer.set()


def _read_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


@contextmanager
def held_model() -> Iterator[HeldModel]:
    """Serve a model while the block runs."""
    held = HeldModel()
    with openai_server(held.answer) as server:
        held.url = server.base_url
        try:
            yield held
        finally:
            held.release()


def build_environment(
    folder: Path, model: HeldModel, options: Mapping[str, Any], *, timeout: float = 60.0
) -> dict[str, str]:
    """Return the environment of workers on the database of this test."""
    return live_server.environment(folder) | {
        "DJANGO_SETTINGS_MODULE": "tests.support.observing_settings",
        "OBSERVATION_OPTIONS": json.dumps(options),
        "OBSERVATION_MODEL_URL": model.url,
        "OBSERVATION_MODEL_TIMEOUT": str(timeout),
    }


@contextmanager
def worker(env: Mapping[str, str], name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker that looks for due work each second, in a process group of its own."""
    folder = Path(env["MASTRA_VAR_DIR"])
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, *WORKER_COMMAND, str(folder / f"{name}.schedule")],
            env=dict(env),
            cwd=servers.ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker with all its threads and children, and wait until it is gone."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def locked_rows(statement: str) -> Iterator[None]:
    """Lock rows in a connection of its own, so that a worker stops when it wants to write them."""
    with connect_to_test_database() as blocker:
        blocker.execute(statement)
        yield
        blocker.close()  # The test may have stopped the server.


def is_blocked() -> bool:
    """Return whether a connection of this database waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


@contextmanager
def database_away() -> Iterator[None]:
    """End all connections to the database of this test, and refuse new ones in the block."""
    name = connection.settings_dict["NAME"]
    connections.close_all()
    with connect_to_test_database("template1", autocommit=True) as other:
        other.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            yield
        finally:
            other.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def wait_until_idle(world: World, folder: Path) -> None:
    """Wait until the workers have nothing more to do."""

    def is_idle() -> bool:
        records = ObservationalRecord.objects.live()
        busy = records.exclude(due_at=None, lease_token=None, reflection_token=None)
        return not busy.exists()

    def describe() -> str:
        fields = ("due_at", "attempts", "error", "lease_operation", "reflection_operation")
        logs = [path.read_text()[-3_000:] for path in folder.glob("*.log")]
        return "\n".join(map(str, [*ObservationalRecord.objects.values(*fields), *logs]))

    wait_until(is_idle, seconds=120, describe=describe)


def check_settled(world: World, due: list[str]) -> None:
    """What must hold at the end: nothing is due, nothing runs, and all rules of the world."""
    assert not due, due
    running = list(ObservationEvent.objects.filter(state="running").values())
    assert not running, running
    world.check()
