"""A thread gets its title from a real worker, over a real queue, from a real HTTP server."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.commands import ROOT, environment, manage
from tests.support.openai_server import openai_server

SAVE_TURNS = """
import sys, time
from mastra_memory.memory import Memory
memory = Memory()
for turn in range(3):
    memory.save_turn("t", f"Plan a trip to Rome, part {turn}", resource_id="ann", answer="Gladly")
until = time.monotonic() + 60
while not memory.get_thread("t").title and time.monotonic() < until:
    time.sleep(0.2)
print(memory.get_thread("t").title)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Run a worker of the service with a fake provider; return its environment variables."""
    with openai_server("Trip to Rome") as server:
        variables = {
            "MASTRA_MEMORY_MODEL": "openai/gpt-5-mini",
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "secret",
        }
        migrated = manage(tmp_path, "migrate", "-v", "0")
        assert migrated.returncode == 0, migrated.stderr
        command = ["-m", "celery", "-A", "project", "worker", "--pool", "solo", "-l", "WARNING"]
        with subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment(tmp_path, **variables) | {"PYTHONWARNINGS": "default"},
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        ) as process:
            yield variables
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        assert len(server.requests) == 1, "a thread needs one call, not one for each turn"


@pytest.mark.slow
def test_titles__are_generated_by_a_worker(tmp_path: Path, worker: dict[str, str]) -> None:
    completed = manage(tmp_path, "shell", "-v", "0", "-c", SAVE_TURNS, **worker)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.strip() == "Trip to Rome"
