"""How rare words are in a scope."""

import pytest

from mastra_memory.db import sql
from mastra_memory.search import term_statistics
from mastra_memory.search.scope import SearchScope
from tests.conftest import Statements
from tests.support.factories import fill, make_thread

pytestmark = pytest.mark.django_db
ALICE = SearchScope(resource_id="alice")


def test_estimate_term_statistics__distinguishes_common_and_rare_words(
    statements: Statements,
) -> None:
    fill(make_thread("alice", "t"), 1_000, text="tea")
    fill(make_thread("bob", "u"), 500, text="coffee")
    sql.execute(
        """UPDATE mastra_memory_message SET search = search || to_tsvector('simple', 'milk')
        WHERE thread_id = 't' AND sequence %% 4 = 0"""
    )
    with statements() as sent:
        known = term_statistics.estimate_term_statistics(
            ["'tea'", "'milk'", "'coffee'", "'999'"], ALICE
        )
    assert len(sent) == 1
    assert known.messages == 1_000
    assert known.is_reliable
    tea, milk, coffee, number = map(known.estimate_frequency, range(4))
    assert tea == 1_000
    assert 150 < milk < 350
    assert coffee == number
    assert 0 < number < 10


def test_estimate_term_statistics__of_a_thread() -> None:
    fill(make_thread("alice", "t"), 200, text="tea")
    fill(make_thread("alice", "u"), 200, text="coffee")
    scope = SearchScope(thread_id="u", resource_id="alice")
    known = term_statistics.estimate_term_statistics(["'tea'", "'coffee'"], scope)
    assert (known.messages, known.containing[0], known.estimate_frequency(1)) == (200, 0, 200)


def test_estimate_term_statistics__a_small_sample_is_not_reliable() -> None:
    thread = make_thread("alice", "t")
    assert not term_statistics.estimate_term_statistics(["'tea'"], ALICE).is_reliable
    fill(thread, 500, text="tea")
    sql.execute("UPDATE mastra_memory_message SET created_at = '2024-01-01'")
    known = term_statistics.estimate_term_statistics(["'tea'"], ALICE)
    assert known.messages == 500
    assert not known.is_reliable


def test_estimate_term_statistics__counts_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(make_thread("alice", "t"), 50)
    monkeypatch.setattr(term_statistics, "MAX_COUNTED_MESSAGES", 20)
    assert term_statistics.estimate_term_statistics(["'tea'"], ALICE).messages == 20
