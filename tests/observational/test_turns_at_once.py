"""Eight turns at once on one resource: none waits for another for ever, and none is lost."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from mastra_memory.models import Message, MessageObservation, ObservationalRecord
from mastra_memory.observational import claims, cycle
from tests.observational.engine import SMALL, check_invariants, observer, words
from tests.support.concurrency import concurrently
from tests.support.factories import a_message, make_thread

pytestmark = pytest.mark.django_db(transaction=True)
TURNS, ROUNDS = 8, 6
AT_ONCE = {"observation": {"messageTokens": 1_000, "bufferTokens": False}}


@pytest.mark.parametrize("scope", ["thread", "resource"])
@pytest.mark.parametrize("threads", [1, TURNS])
def test_turns__at_once_are_all_observed_once(
    memory_settings: Callable[..., None], scope: str, threads: int
) -> None:
    options: dict[str, Any] = SMALL if scope == "thread" else SMALL | AT_ONCE | {"scope": scope}
    memory_settings(OPTIONS={"observationalMemory": options})
    owned = [make_thread("alice") for _ in range(threads)]

    def take_turns(number: int) -> None:
        memory, thread = Memory(), owned[number % threads]
        for _ in range(ROUNDS):
            memory.save_messages([a_message(thread, text=words(100)) for _ in range(2)])
            memory.context(thread.id, resource_id="alice")
            for record_id in claims.list_due_records():
                cycle.run_due_cycle(record_id)

    with observer():
        concurrently(take_turns, range(TURNS))
        assert Message.objects.count() == TURNS * ROUNDS * 2
        assert not ObservationalRecord.objects.exclude(lease_token=None).exists()
        for thread in owned:
            while Memory().observe(thread_id=thread.id, resource_id="alice").observed:
                pass
    rows = MessageObservation.objects.exclude(chunk__activated_at=None)
    assert rows.count() == TURNS * ROUNDS * 2
    assert ObservationalRecord.objects.live().count() == (threads if scope == "thread" else 1)
    check_invariants()
