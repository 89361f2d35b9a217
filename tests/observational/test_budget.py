"""What observation costs a turn, and how large a context becomes."""

import os
import time
from collections.abc import Callable

import pytest
from django.db import connection

from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import backlog
from mastra_memory.types import StoredThread
from tests.conftest import Statements
from tests.observational.engine import check_invariants, do_due_work, live, observer, say, words
from tests.support.factories import a_message, fill, make_thread, save

pytestmark = pytest.mark.django_db
MESSAGES, MESSAGES_PER_TURN, MESSAGE_TOKENS = 2_000, 5, 300
MAX_HISTORY, MAX_LOG = 36_000, 48_000
"""Where the defaults stop to wait: 1.2 times 30,000 and 40,000 tokens."""


@pytest.mark.slow
def test_long_conversation__stays_within_its_budget_at_every_turn(
    memory_settings: Callable[..., None],
) -> None:
    memory_settings(OPTIONS={"observationalMemory": True})
    memory, thread = Memory(), make_thread()
    total = 0
    with observer(observation_tokens=2_500) as model:
        for number in range(MESSAGES // MESSAGES_PER_TURN):
            texts = [words(MESSAGE_TOKENS) for _ in range(MESSAGES_PER_TURN)]
            memory.save_messages([a_message(thread, text=text) for text in texts])
            total += MESSAGE_TOKENS * MESSAGES_PER_TURN
            do_due_work()
            status = memory.get_observational_status(thread_id=thread.id)
            assert status.pending_tokens <= MAX_HISTORY
            assert status.observation_tokens <= MAX_LOG
            if number % 50 == 0:
                context = memory.context(thread.id, new_messages="And now?")
                assert context.tokens <= MAX_HISTORY + MAX_LOG
    assert total > 500_000 and live(thread).generation_count >= 2
    assert len(model.requests) < MESSAGES / 10
    check_invariants()


def measure(act: Callable[[], object]) -> float:
    """The shortest of several runs, in milliseconds."""
    times = []
    for _ in range(7):
        started = time.perf_counter()
        act()
        times.append(time.perf_counter() - started)
    return min(times) * 1_000


@pytest.mark.django_db(transaction=True)
def test_bookkeeping__costs_no_more_in_a_thread_of_20_000_messages(
    memory_settings: Callable[..., None],
) -> None:
    """A machine with nothing else to do needs less than 5 ms."""
    memory_settings(OPTIONS={"observationalMemory": True})
    memory, thread = Memory(), make_thread()
    fill(thread, 20_000, searchable=False)
    with observer():
        say(memory, thread, 10)
        do_due_work()
    options = memory.options.observational_memory
    assert options is not None
    with connection.cursor() as cursor:  # as autovacuum does
        cursor.execute("VACUUM ANALYZE mastra_memory_messageobservation")
    short = make_thread()
    say(memory, short, 10)
    stored = {made.id: save([a_message(made, text="Hello")]) for made in (thread, short)}

    def track(made: StoredThread) -> list[str]:
        return backlog.track_saved(stored[made.id], options, agent_id=None)

    assert track(thread) == []
    assert measure(lambda: track(thread)) < 3 * measure(lambda: track(short)) + 1
    if os.environ.get("MEASURED_BUDGETS"):
        assert measure(lambda: track(thread)) < 5


def test_statements__of_a_save_do_not_grow_with_the_thread(
    memory_settings: Callable[..., None], statements: Statements
) -> None:
    memory_settings(OPTIONS={"observationalMemory": True})
    memory, thread = Memory(), make_thread()
    say(memory, thread, 10)
    counts = []
    for _ in range(3):
        with statements() as sent:
            say(memory, thread, 10)
        counts.append(len(sent))
    assert counts == [counts[0]] * 3 and counts[0] <= 6
    memory_settings(OPTIONS={})
    with statements() as sent:
        say(Memory(), thread, 10)
    assert len(sent) == 1
    assert ObservationalRecord.objects.count() == 1
