"""Words and meaning together."""

from collections.abc import Sequence

import pytest

from mastra_memory.search import fusion, tsvector
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
    found = fusion.fuse_scores(scored(m3=5.0), [], limit=10)
    assert {one.id for one in found} == {"m1", "m2", "m3", "m4", "m5"}
    scores = {one.id: one.score for one in found}
    assert scores["m3"] > scores["m2"] == scores["m4"] > scores["m1"] == scores["m5"] > 0


def test_fuse_scores__a_message_between_two_hits_rises(thread: StoredThread) -> None:
    found = order(scored(m0=2.0, m3=5.0, m5=5.0), [])
    assert found.index("m4") < found.index("m0")


def test_fuse_scores__a_short_message_or_question_loses(db: None) -> None:
    thread = make_thread("alice", "t")
    texts = ["thanks", "the red bicycle was stolen in Berlin", "was the red bicycle stolen then?"]
    save([a_message(thread, f"m{n}", text=text, at=n) for n, text in enumerate(texts)])
    tsvector.index_pending_words()
    assert order(scored(m0=5.0, m1=5.0, m2=5.0), []) == ["m1", "m2", "m0"]


def test_fuse_scores__a_session_with_more_matches_wins(db: None) -> None:
    hours = {"a": (0, 1, 2), "b": (0, 20, 40)}
    messages = {}
    for number, (thread_id, times) in enumerate(hours.items()):
        thread = make_thread("alice", thread_id)
        for position, hour in enumerate(times):
            key, at = f"{thread_id}{position}", hour * 3_600 + number
            save([a_message(thread, key, text="some words of this message", at=at)])
            messages[key] = ScoredMessage(key, moment(at).timestamp(), number, 1.0)
    found = {one.id: one.score for one in fusion.fuse_scores(list(messages.values()), [], limit=9)}
    # Both threads have three matches with the same neighbours, but those of `b` are days apart.
    assert min(found["a0"], found["a1"]) > max(found["b0"], found["b1"])
    single = fusion.fuse_scores([messages["a0"], messages["b0"]], [], limit=9)
    assert single[0].score == single[1].score


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
    assert set(order(scored(m7=1.0), [])) == {"m5", "m6", "m7"}


def test_fuse_scores__reminders_are_no_neighbours(thread: StoredThread) -> None:
    save([a_message(thread, "hint", text="<system-reminder>x</system-reminder>", at=7.5)])
    assert "hint" not in order(scored(m7=1.0), [])


def test_fuse_scores__one_statement(thread: StoredThread, statements: Statements) -> None:
    with statements() as sent:
        fusion.fuse_scores(scored(m0=1.0, m4=2.0), scored(m5=0.5), limit=5)
    assert len(sent) == 1
