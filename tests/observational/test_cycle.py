"""The whole cycle: saves request work, and workers observe, buffer, activate and reflect."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from tests.observational.engine import (
    SMALL,
    check_invariants,
    live,
    observer,
    say,
    states,
    work_off,
)
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def configure(memory_settings: Callable[..., None]) -> Callable[..., Memory]:
    """Set the options of observational memory, and return a memory that has them."""

    def build(**options: Any) -> Memory:
        memory_settings(OPTIONS={"observationalMemory": SMALL | options})
        return Memory()

    return build


SYNC = {"observation": {"messageTokens": 1_000, "bufferTokens": False}}


def test_sync__messages_are_observed_at_the_threshold(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    with observer() as model:
        for _ in range(8):
            say(memory, thread)
            work_off()
        assert not model.requests and set(states(thread).values()) == {"pending"}
        for _ in range(4):
            say(memory, thread)
            work_off()
    assert model.purposes == ["observation"]
    found = list(states(thread).values())
    assert found.count("observed") >= 9 and found.count("pending") == 12 - found.count("observed")
    assert "Observation 1" in live(thread).active_observations
    check_invariants()


def test_buffering__a_chunk_is_prepared_and_activated(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(), make_thread()
    with observer() as model:
        for _ in range(4):
            say(memory, thread)
            work_off()
        assert model.purposes == ["observation"]
        assert live(thread).active_observations == ""
        assert set(states(thread).values()) == {"buffered", "pending"}
        for _ in range(12):
            say(memory, thread)
            work_off()
    assert "Observation 1" in live(thread).active_observations
    assert "observed" in states(thread).values()
    check_invariants()
