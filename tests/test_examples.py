"""The examples run as they are, without a key and without a network."""

import subprocess
import sys
from pathlib import Path

import pytest

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
        "60 messages were said. No context had more than",
        "generation 2",
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
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        cwd=ROOT,
        env=environment(var_dir) | {"PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in SAID[name]:
        assert words in done.stdout
