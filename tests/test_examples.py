"""The examples run as they are, without a key and without a network."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.observational_peer.fake_model import FakeModel
from tests.project.commands import ROOT, environment

NAMES = sorted(
    path.stem
    for path in (ROOT / "examples").glob("*.py")
    if path.stem not in ("__init__", "django_setup")
)
SAID = {
    "support_agent": [
        "A new pole is on its way.",
        "You are Mara; last time it was about a tent pole.",
        "-1: Hello, I am Mara, and my tent has a broken pole",
        "-2: Hello again",
        "- **First Name**: Mara",
    ],
    "openai_agents_session": ["You have said 2 things.", "4 items are stored."],
    "langchain_chat": ["You said that you are Ann.", "4 messages are stored."],
    "observed_conversation": [
        "61 messages, observed by local/extractive",
        "buffered: observed in advance",
        "activated: observations replace messages",
        "reflected: the older observations are condensed",
        "(08:50) User: Three tables, event_log, tmp_import, legacy_tags.",
        "Ann corrected it: True",
        "Ann undid it: True",
    ],
    "langgraph_chat": ["You said that you are Ann.", "4 messages are stored."],
}


@pytest.fixture(scope="module")
def var_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One database for all examples."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_example__runs(name: str, var_dir: Path) -> None:
    done = run_example(name, var_dir)
    assert done.returncode == 0, done.stderr
    for words in SAID[name]:
        assert words in done.stdout


@pytest.mark.slow
def test_observed_conversation__a_compatible_server_observes(var_dir: Path) -> None:
    server = FakeModel.start()
    try:
        options = ("--model", "server/fake", "--base-url", server.get_url("example"))
        done = run_example("observed_conversation", var_dir, *options)
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr
    assert "activated: observations replace messages" in done.stdout
    assert "User stated: Three tables, event_log, tmp_import, legacy_tags." in done.stdout
    assert {call.purpose for call in server.take_calls("example")} == {"observation", "reflection"}


def run_example(name: str, var_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"examples.{name}", *arguments],
        cwd=ROOT,
        env=environment(var_dir) | {"PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
