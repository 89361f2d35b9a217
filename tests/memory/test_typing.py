"""The types of `Memory`: a host project that uses it passes `mypy --strict`."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from mastra_memory.memory import Memory
from tests.memory import host

ROOT = Path(__file__).parents[2]
CONFIG = """[mypy]
strict = true
plugins = mypy_django_plugin.main
[mypy-mastra_memory.*]
follow_imports = silent
[mypy.plugins.django-stubs]
django_settings_module = project.settings
"""
WRONG_CALLS = """from mastra_memory.memory import Memory

memory = Memory("support", options={"lastMessages": 5})
memory.list_threads(owner="ann")
memory.recall("t", per_page="10")
memory.clone_thread("t", with_messages=True)
memory.get_thread("t").name

async def use() -> None:
    await memory.alist_messages("t", last=5)
"""


def public_methods() -> dict[str, Any]:
    methods = inspect.getmembers(Memory, inspect.isfunction)
    return {name: method for name, method in methods if not name.startswith("_")}


def contains_any(annotation: Any) -> bool:
    return annotation is Any or any(map(contains_any, get_args(annotation)))


def run_mypy(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "mypy.ini").write_text(CONFIG)
    (folder / "host.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file", str(folder / "mypy.ini")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache/host"), str(folder / "host.py")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("name", public_methods())
def test_signature__names_every_argument_and_type(name: str) -> None:
    method = public_methods()[name]
    kinds = {parameter.kind for parameter in inspect.signature(method).parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    hints = get_type_hints(inspect.unwrap(method))
    assert "return" in hints
    assert not [argument for argument, hint in hints.items() if contains_any(hint)]
    assert inspect.getdoc(method)


def test_package__is_marked_as_typed() -> None:
    assert (ROOT / "mastra_memory/py.typed").is_file()


def test_host__uses_every_public_method() -> None:
    source = inspect.getsource(host)
    assert [name for name in public_methods() if f"memory.{name}(" not in source] == []


@pytest.mark.slow
def test_host__passes_mypy_strict(tmp_path: Path) -> None:
    checked = run_mypy(inspect.getsource(host), tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    refused = run_mypy(WRONG_CALLS, tmp_path)
    lines = [line.partition(":")[2].partition(":")[0] for line in refused.stdout.splitlines()]
    assert {"4", "5", "6", "7", "10"} <= set(lines), refused.stdout + refused.stderr
