"""Words and meaning together."""

from collections.abc import Sequence

import pytest

from mastra_memory.search import fusion
from mastra_memory.search.types import ScoredMessage
from mastra_memory.types import StoredThread
from tests.conftest import Statements
from tests.support.factories import a_message, make_thread, moment, save, some_messages

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(db: None) -> StoredThread:
    """A thread of m0 … m7."""
    made = make_thread("alice", "t")
    save(some_messages(made, 8))
    return made


def scored(**scores: float) -> list[ScoredMessage]:
    """Messages with these scores."""
    return [
        ScoredMessage(k, moment(int(k[1:])).timestamp(), int(k[1:]), s) for k, s in scores.items()
    ]


def order(
    words: Sequence[ScoredMessage], meaning: Sequence[ScoredMessage], limit: int = 10
) -> list[str]:
    """Ids, best first."""
    return [one.id for one in fusion.fuse_scores(words, meaning, limit=limit)]


def test_fuse_scores__what_both_find_is_first(thread: StoredThread) -> None:
    found = order(scored(m0=5.0, m3=4.0), scored(m3=0.9, m6=0.8))
    assert found[0] == "m3"


def test_fuse_scores__neighbours_get_a_share(thread: StoredThread) -> None:
    assert set(order(scored(m3=5.0), [])) == {"m2", "m3", "m4"}
    found = fusion.fuse_scores(scored(m3=5.0), [], limit=3)
    assert found[0].id == "m3"
    assert found[1].score == pytest.approx(found[0].score * fusion.NEIGHBOUR_WEIGHT)


def test_fuse_scores__a_message_between_two_hits_rises(thread: StoredThread) -> None:
    found = order(scored(m0=2.0, m3=5.0, m5=5.0), [])
    assert found.index("m4") < found.index("m0")


def test_fuse_scores__scores_are_between_zero_and_one_and_fall(thread: StoredThread) -> None:
    found = fusion.fuse_scores(
        scored(m2=9.0, m3=8.0, m4=7.0), scored(m3=1.0, m2=0.9, m7=0.1), limit=10
    )
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_fuse_scores__one_side_alone_is_enough(thread: StoredThread) -> None:
    assert order([], scored(m1=0.9, m5=0.2))[0] == "m1"
    assert order(scored(m1=3.0, m5=1.0), [])[0] == "m1"
    assert order([], []) == []


def test_fuse_scores__neighbours_stay_within_the_thread(thread: StoredThread) -> None:
    save([a_message(make_thread("alice", "u"), "other", at=8)])
    assert set(order(scored(m7=1.0), [])) == {"m6", "m7"}


def test_fuse_scores__reminders_are_no_neighbours(thread: StoredThread) -> None:
    save([a_message(thread, "hint", text="<system-reminder>x</system-reminder>", at=7.5)])
    assert "hint" not in order(scored(m7=1.0), [])


def test_fuse_scores__one_statement(thread: StoredThread, statements: Statements) -> None:
    with statements() as sent:
        fusion.fuse_scores(scored(m0=1.0, m4=2.0), scored(m5=0.5), limit=5)
    assert len(sent) == 1
