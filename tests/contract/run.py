"""Check our server with the conformance kit: `python -m tests.contract.run`.

Environment variables:

    SCENARIOS        folders or files of scenarios, separated by spaces or colons; default: those
                     of the kit
    CONFORMANCE_DIR  folder of another kit

Checks listed in `waiting.txt` are known to fail. They run too, and it is an error if they pass.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import servers
from tests.support.servers import say

WAITING_FILE = Path(__file__).with_name("waiting.txt")
CLIENT_PREFIX = "client: "
SETTINGS = "tests.contract.settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The names of the checks with each result."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    overdue: list[str] = field(default_factory=list)
    """Passed although listed as waiting."""

    @property
    def is_good(self) -> bool:
        """Whether at least one check passed, and none failed or is overdue."""
        return bool(self.passed) and not self.failed and not self.overdue

    def total(self) -> str:
        """Return the counts as text: `3 passed, 0 failed, ...`."""
        kinds = ("passed", "failed", "waiting", "overdue")
        return ", ".join(f"{len(getattr(self, kind))} {kind}" for kind in kinds)


@dataclass(frozen=True, slots=True)
class Target:
    """The server under test, and the headers of a caller who may see every resource."""

    url: str
    headers: Mapping[str, str]


def judge(states: Mapping[str, str], waiting: frozenset[str]) -> Verdict:
    """Return the result of each check. A check in `waiting` is expected not to pass."""
    verdict = Verdict()
    for name, state in states.items():
        if state == "pass":
            (verdict.overdue if name in waiting else verdict.passed).append(name)
        else:
            (verdict.waiting if name in waiting else verdict.failed).append(name)
    return verdict


def read_waiting(text: str) -> frozenset[str]:
    """Return the names in a waiting list: one per line; comments start with #."""
    names = (line.partition("#")[0].strip() for line in text.splitlines())
    return frozenset(name for name in names if name)


def scenario_paths(text: str, kit: Path) -> list[Path]:
    """Return the folders and files in SCENARIOS, or the kit's own folder if it is empty."""
    return [Path(word).resolve() for word in re.split(r"[:\s]+", text) if word] or [kit / "open"]


def find_scenarios(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the file of every scenario by its id. Two files with the same id are an error."""
    found: dict[str, Path] = {}
    for path in paths:
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        for file in files:
            name = json.loads(file.read_text())["id"]
            if found.setdefault(name, file) != file:
                raise servers.ServerError(f"{found[name]} and {file} are both called {name}.")
    if not found:
        raise servers.ServerError(f"No scenario in {', '.join(map(str, paths))}.")
    return found


def replay(kit: Path, target: Target, files: Sequence[Path], *, show: bool) -> dict[str, str]:
    """Run scenarios with the kit's replayer, and return their states by id."""
    if not files:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        headers = [
            word for pair in target.headers.items() for word in ("--header", ": ".join(pair))
        ]
        subprocess.run(
            [
                *(sys.executable, str(kit / "replay.py"), "--base-url", target.url, "--quiet"),
                *("--report", str(report), *headers, *map(str, files)),
            ],
            stdout=None if show else subprocess.DEVNULL,
            check=False,
        )
        if not report.exists():
            raise servers.ServerError("The replayer ended without a report.")
        outcome = json.loads(report.read_text())
    return {scenario["id"]: scenario["state"] for scenario in outcome["scenarios"]}


def run_client(kit: Path, target: Target, waiting: frozenset[str]) -> dict[str, str]:
    """Run the kit's client checks, print those that fail, and return all states by name."""
    done = subprocess.run(
        [str(servers.node(kit)), "client.mjs"],
        cwd=kit,
        env=os.environ | {"BASE_URL": target.url, "HEADERS": json.dumps(dict(target.headers))},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    states = read_client_output(done.stdout)
    if done.returncode and "fail" not in states.values():
        raise servers.ServerError(f"The client ended with code {done.returncode}.\n{done.stdout}")
    hidden = False
    for line in done.stdout.splitlines():
        if line.startswith(("PASS", "FAIL")):
            hidden = line.startswith("PASS") or CLIENT_PREFIX + line[6:] in waiting
        if not hidden:
            say(line)
    return states


def read_client_output(text: str) -> dict[str, str]:
    """Return the states of the client's checks, from lines like `PASS  name`."""
    lines = re.findall(r"^(PASS|FAIL)  (.+)$", text, re.MULTILINE)
    return {CLIENT_PREFIX + name: state.lower() for state, name in lines}


@contextmanager
def run_our_server(kit: Path, scratch: Path) -> Iterator[Target]:
    """Run our server on a new database, with the kit's agents and the token of a superuser."""
    os.environ |= servers.environment(SETTINGS, scratch / "var", CONFORMANCE_DIR=str(kit))
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    token = _prepare_database()
    port = servers.free_port()
    url = f"http://127.0.0.1:{port}"
    try:
        with servers.running(
            servers.build_server_command(port),
            env=os.environ,
            log=scratch / "log",
            health_url=f"{url}/healthz",
        ):
            yield Target(url, {"Authorization": f"Bearer {token}"})
    finally:
        _release_database(scratch / "var")


def _prepare_database() -> str:
    """Create the tables and a superuser, and return a token of the superuser.

    The embedded PostgreSQL server runs until our connection is closed.
    """
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    get_user_model().objects.create_superuser("conformance")
    return str(call_command("create_token", "conformance", stdout=open(os.devnull, "w")))


def _release_database(var_dir: Path) -> None:
    from django.db import connection

    from project import embedded_postgres

    connection.close()
    embedded_postgres.release(var_dir)


def report(scenarios: Verdict, client: Verdict, unknown: Iterable[str]) -> int:
    """Print the results and return the exit code."""
    unknown = sorted(unknown)
    say(f"\nscenarios: {scenarios.total()}\nclient:    {client.total()}")
    for verdict in (scenarios, client):
        for kind in ("failed", "waiting", "overdue"):
            for name in getattr(verdict, kind):
                say(f"  {kind}: {name}")
    overdue = [*scenarios.overdue, *client.overdue]
    if overdue or unknown:
        say(f"Remove these names from {WAITING_FILE.name}: {', '.join([*overdue, *unknown])}")
    return 0 if scenarios.is_good and client.is_good and not unknown else 1


def main() -> int:
    """Run all checks. The exit code is 0 if exactly the checks in `waiting.txt` fail."""
    servers.stop_on_terminate()
    waiting = read_waiting(WAITING_FILE.read_text())
    given = os.environ.get("SCENARIOS", "")
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        scratch = Path(folder)
        kit = Path(os.environ.get("CONFORMANCE_DIR") or servers.KIT).resolve()
        found = find_scenarios(scenario_paths(given, kit))
        kit = servers.kit_with_packages(kit, scratch)
        with run_our_server(kit, scratch) as target:
            say(f"replaying {len(found)} scenarios against {target.url}")
            due = [file for name, file in found.items() if name not in waiting]
            later = [file for name, file in found.items() if name in waiting]
            states = replay(kit, target, due, show=True)
            states |= replay(kit, target, later, show=False)
            client = run_client(kit, target, waiting)
    unknown = waiting - states.keys() - client.keys()
    return report(judge(states, waiting), judge(client, waiting), () if given else unknown)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except servers.ServerError as error:
        sys.exit(str(error))
