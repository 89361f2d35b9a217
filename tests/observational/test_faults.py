"""Workers that are killed or late, and a model that fails: nothing is lost or done twice.

`make test` kills at a few steps, `make faults` at each step of each operation.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.db import leases, times
from mastra_memory.models import ObservationalRecord, ObservationEvent
from mastra_memory.observational import claims
from tests.observational import fault_cases, faults
from tests.observational.fault_cases import AT_ONCE, BUFFERING, OF_RESOURCE, OPERATIONS, Setting
from tests.observational.world import ANSWERS
from tests.support.factories import make_thread
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ALL = os.environ.get("MEASURED_BUDGETS") == "1"


@pytest.fixture
def setting(tmp_path: Path, memory_settings: Callable[..., None]) -> Iterator[Setting]:
    """A conversation without messages."""
    with fault_cases.new_setting(tmp_path, memory_settings) as setting:
        yield setting


STEPS = {operation: ("claim", "start", "model", "commit", "end") for operation in OPERATIONS} | {
    "activation": ("claim", "start", "activate", "model", "commit", "end"),
    "activation of a reflection": ("claim", "start"),
}
"""The steps of each operation, see `fault_cases.LOCKS`; `model` is while the model is asked."""
KILLS = [
    (operation, step)
    for operation, steps in STEPS.items()
    for step in steps
    if ALL or (operation, step) in {("buffering", "commit"), ("reflection", "end")}
]


@pytest.mark.parametrize(("operation", "step"), KILLS)
def test_kill__loses_nothing(setting: Setting, operation: str, step: str) -> None:
    purpose = OPERATIONS[operation](setting)
    assert claims.list_due_records()
    with fault_cases.stopped_worker(setting, purpose, step) as process:
        faults.kill(process)
    setting.model.release()
    setting.world.check()
    with faults.worker(setting.env(), "second"):
        setting.finish()


@pytest.mark.parametrize(
    "operation",
    ["observation", "buffering", "reflection", "buffered reflection"] if ALL else ["observation"],
)
def test_late_worker__discards_its_result(setting: Setting, operation: str) -> None:
    """A worker stands still for longer than its lease, another one takes over."""
    purpose = OPERATIONS[operation](setting)
    with fault_cases.stopped_worker(setting, purpose, "model") as late:
        os.killpg(late.pid, signal.SIGSTOP)
        late_event = ObservationEvent.objects.get(state="running")
        lease_ended = times.now().timestamp() + leases.LEASE_SECONDS
        with faults.worker(setting.env(), "second") as second:
            wait_until(lambda: times.now().timestamp() > lease_ended)
            setting.model.release()
            setting.finish()
            faults.kill(second)
        os.killpg(late.pid, signal.SIGCONT)
        setting.say(12)  # The late worker goes on to live, and does what is due now.
        setting.finish()
    late_event.refresh_from_db()
    assert late_event.state == "failed"


@pytest.mark.parametrize(
    "options", [BUFFERING, AT_ONCE, OF_RESOURCE] if ALL else [BUFFERING], ids=str
)
def test_two_workers__do_nothing_twice(setting: Setting, options: dict[str, Any]) -> None:
    setting.use(options)
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


FAILURES: dict[str, list[Any]] = {
    "hangs": [],
    "500": [500] * 10,
    "401": [401],
    "429": [429] * 10,
    "empty": [ANSWERS["empty"]] * 4,
    "no observations": [ANSWERS["no observations"]] * 4,
    "repetitive": [ANSWERS["degenerate"]] * 4,
    "overlong": [ANSWERS["huge"]] * 4,
    "a tool call": [{"tool": "unknown", "args": {}}] * 4,
    "nonsense": [ANSWERS["nonsense"]],
    "cut off": [ANSWERS["unclosed"]],
    "odd characters": [ANSWERS["null bytes"].replace("\ud800", "")],
}
"""What the provider answers instead of observations. The last three may be taken for some."""
FAILING = [
    (operation, failure)
    for operation in ("observation", "reflection", "buffering", "buffered reflection")
    for failure in FAILURES
    if operation in ("observation", "reflection") or failure in ("hangs", "500", "empty")
]


@pytest.mark.skipif(not ALL, reason="waits for the time after which a failure is tried again")
@pytest.mark.parametrize(("operation", "failure"), FAILING)
def test_model__that_fails_loses_nothing(setting: Setting, operation: str, failure: str) -> None:
    purpose = OPERATIONS[operation](setting)
    known_events = set(ObservationEvent.objects.values_list("pk", flat=True))
    setting.model.scripted = list(FAILURES[failure])
    if failure == "hangs":
        setting.model.hold(purpose)
    with faults.worker(setting.env(timeout=3.0), "worker"):
        ended = ObservationEvent.objects.exclude(pk__in=known_events).exclude(state="running")
        wait_until(ended.exists)
        setting.world.check()
        setting.say(3)  # A save succeeds while the model fails.
        setting.model.scripted = []
        setting.model.release()
        setting.finish()
    assert ObservationEvent.objects.filter(state="done").exists()
    assert ObservationalRecord.objects.live().get().active_observations.strip()
