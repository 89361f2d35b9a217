"""What observation costs a turn, and how large a context becomes."""

from collections.abc import Callable

import pytest

from mastra_memory.db import sql
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord
from tests.conftest import Statements
from tests.observational.engine import check_invariants, do_due_work, live, observer, say, words
from tests.support.factories import a_message, make_thread

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
                sql.execute("ANALYZE")  # Autovacuum does it, but not within this transaction.
                context = memory.context(thread.id, new_messages="And now?")
                assert context.tokens <= MAX_HISTORY + MAX_LOG
    assert total > 500_000 and live(thread).generation_count >= 2
    assert len(model.requests) < MESSAGES / 10
    check_invariants()


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
    assert counts == [1, 1, 1]
    memory_settings(OPTIONS={})
    with statements() as sent:
        say(Memory(), thread, 10)
    assert len(sent) == 1
    assert not ObservationalRecord.objects.exists()  # There was no work yet.
