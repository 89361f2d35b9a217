"""The OpenAPI schema and the service agree: schemathesis finds no difference and no fault.

The short run is part of the tests. `make faults` sets CONTRACT_EXAMPLES, the number of examples for
each operation. The seed is fixed, so that every run tries the same cases.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.target import Target, serving
from tests.project.commands import ROOT

pytestmark = pytest.mark.slow
SHORT_EXAMPLES = 15
EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES") or SHORT_EXAMPLES)
SEED = 20
MIN_CASES = 20_000 if EXAMPLES >= 700 else 1_000
CONFIG = Path(__file__).parent / "schemathesis.toml"


def run_schemathesis(target: Target, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run it over the whole schema; what it prints is shown while it runs, and kept."""
    command = [
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "--no-color",
        "run", f"http://127.0.0.1:{target.port}/api/schema/?format=json",
        "--header", f"Authorization: Bearer {target.token}",
        "--checks", "all", "--phases", "examples,coverage,fuzzing", "--seed", str(SEED),
        "--generation-database", "none", "--no-shrink", "--max-examples", str(EXAMPLES),
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    printed = []
    with subprocess.Popen(
        command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            printed.append(line)
    return subprocess.CompletedProcess(command, process.returncode, "".join(printed))


def test_contract__schema_and_service_agree(tmp_path: Path) -> None:
    with serving(tmp_path, settings="tests.hostile.contract_settings", samples=True) as target:
        done = run_schemathesis(target, tmp_path)
        assert target.healthy()
    assert done.returncode == 0, done.stdout[-20_000:]
    cases = re.search(r"(\d+) generated", done.stdout)
    assert cases is not None and int(cases[1]) >= MIN_CASES, done.stdout[-2_000:]
