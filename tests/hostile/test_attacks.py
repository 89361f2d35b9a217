"""No attack of the table stops the service.

Only `make faults` compares the time with the budget of the line: it runs on a quiet machine.
"""

import os
import sys
from collections.abc import Iterator

import pytest

from tests.hostile.attack import Attack
from tests.hostile.attacks import ATTACKS
from tests.hostile.target import Target, serving
from tests.support.waiting import MAX_WAIT_SECONDS

pytestmark = pytest.mark.slow
MEASURED = os.environ.get("MEASURED_BUDGETS") == "1"
MEGABYTES_FACTOR = 1.0 if MEASURED else 2.0
MAX_MEGABYTES_LEFT = 400
"""What the largest web process may hold after any attack."""
CHOSEN = [attack for attack in ATTACKS if MEASURED or not attack.long]


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The service, started once for all attacks."""
    with serving(tmp_path_factory.mktemp("hostile")) as started:
        yield started


@pytest.mark.parametrize("attack", CHOSEN, ids=[attack.name for attack in CHOSEN])
def test_attack__is_answered_within_its_budget(target: Target, attack: Attack) -> None:
    if attack.prepare:
        attack.prepare(target)
    target.timeout = attack.seconds + 5 if MEASURED else MAX_WAIT_SECONDS
    with target.measured() as costs:
        reply = attack.send(target)
    (cost,) = costs
    sys.stdout.write(
        f"{reply.status}, {cost.seconds:.2f} s, +{cost.megabytes:.0f} MB, {cost.left:.0f} MB left "
    )
    assert reply.status in attack.statuses, (cost, reply)
    if MEASURED:
        assert cost.seconds <= attack.seconds, cost
    assert cost.megabytes <= attack.megabytes * MEGABYTES_FACTOR, cost
    assert cost.left <= MAX_MEGABYTES_LEFT * MEGABYTES_FACTOR, cost
    assert target.healthy()
