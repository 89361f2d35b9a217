"""Finding messages by their words."""

import pytest

from mastra_memory.db import sql
from mastra_memory.models import Message, Thread
from mastra_memory.search import bm25, query, tsvector
from mastra_memory.search.scope import SearchScope
from tests.conftest import Statements
from tests.support.factories import a_message, fill, make_thread, save

pytestmark = pytest.mark.django_db


def found(words: str, *, limit: int = 10, **scope: object) -> list[str]:
    """Ids, best first; of resource `alice` unless a scope is named."""
    where = SearchScope(**(scope or {"resource_id": "alice"}))  # type: ignore[arg-type]
    return [s.id for s in bm25.find_by_words(query.parse_query(words), where, limit=limit)]


def say(*texts: str, thread_id: str = "t", resource_id: str = "alice", title: str = "") -> None:
    """Store messages `t0`, `t1`, … of these texts."""
    thread = make_thread(resource_id, thread_id, title=title)
    batch = [a_message(thread, f"{thread_id}{n}", text=said, at=n) for n, said in enumerate(texts)]
    save(batch)


def test_find_by_words__any_of_the_words_is_enough_all_are_better() -> None:
    say("green tea", "black tea with milk", "milk for the cat", "nothing here")
    assert found("tea milk") == ["t1", "t2", "t0"]


def test_find_by_words__a_rare_word_counts_more_than_a_common_one() -> None:
    say("cake today", "cake tomorrow", "cake on sunday", "zeppelin on sunday", "cake again")
    assert found("cake zeppelin")[0] == "t3"


def test_find_by_words__a_short_message_that_says_it_often_comes_first() -> None:
    say("apple pie " + "and many other things " * 20, "apple apple apple", "apple")
    assert found("apple") == ["t1", "t2", "t0"]


def test_find_by_words__among_equals_the_newest_is_first() -> None:
    say("same words", "same words", "same words")
    assert found("words") == ["t2", "t1", "t0"]


def test_find_by_words__a_word_that_occurs_nowhere_finds_nothing() -> None:
    say("apples", "pears")
    assert found("zebra") == []


def test_find_by_words__phrase_and_minus() -> None:
    say("red fox jumps", "fox red", "the red fox and the hound")
    assert set(found('"red fox"')) == {"t0", "t2"}
    assert found('"red fox" -hound') == ["t0"]
    assert found('fox -"red fox"') == ["t1"]


def test_find_by_words__accents_and_case_do_not_matter() -> None:
    say("Été à Zürich", "ПРИВЕТ, мир", "한국어 문장")
    assert found("ete zurich") == ["t0"]
    assert found("привет") == ["t1"]
    assert found("한국어") == ["t2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tea/coffee and/or milk", "coffee"),
        ("a List<String> of names", "string"),
        ("green <tea>", "tea"),
        ('<div class="x">Hello</div>', "class"),
        ("see /usr/local/bin/python", "local"),
        ("mail ann.lee@example.com", "lee"),
        ("mail ann.lee@example.com", '"ann.lee@example.com"'),
        ("https://example.com/pricing?plan=team", "pricing"),
        ("It ended.Then it began", "ended"),
        ("snake_case", "case"),
        ("on 2024-01-05", "05"),
        ("version v1.2.3", '"2.3"'),
        ("a well-known fact", "well-known"),
        ("key:value", "value"),
    ],
)
def test_find_by_words__punctuation_separates_words(text: str, words: str) -> None:
    say(text, "something else")
    assert found(words) == ["t0"]


def test_find_by_words__a_part_of_a_run_of_chinese_is_found() -> None:
    say("今天天气很好，我们去公园", "气天", "今晚吃什么")
    assert found("天气") == ["t0"]
    assert found("公园") == ["t0"]


def test_find_by_words__finds_only_messages_in_the_scope() -> None:
    say("violet submarine", thread_id="a")
    say("violet guitar", thread_id="b")
    say("violet secret", thread_id="c", resource_id="bob")
    assert set(found("violet")) == {"a0", "b0"}
    assert found("violet", thread_id="b") == ["b0"]
    assert found("violet", thread_id="c", resource_id="alice") == []
    assert set(found("violet", within=Thread.objects.exclude(pk="b"))) == {"a0", "c0"}
    assert len(found("violet", within=None)) == 3


def test_find_by_words__a_title_matches_the_newest_message() -> None:
    say("first", "second", "third", thread_id="a", title="Trip to Lisbon")
    say("lisbon is sunny", "so is rome", thread_id="b")
    assert found("lisbon") == ["a2", "b0"]
    assert found("lisbons") == ["a2", "b0"]
    assert found('"trip to lisbon"') == ["a2"]
    assert found("trip -third") == ["a1"]


def test_find_by_words__a_title_matches_an_unindexed_message() -> None:
    say(*["rain"] * (tsvector.MAX_MESSAGES_ON_SAVE + 1), thread_id="a", title="Trip to Lisbon")
    say("lisbon is sunny", thread_id="b")
    assert Message.objects.get(pk="a10").search is None
    scope = SearchScope(resource_id="alice")
    scored = bm25.find_by_words(query.parse_query("lisbon"), scope, limit=10)
    assert {one.id for one in scored} == {"a10", "b0"}
    assert all(one.score > 0 for one in scored)


def test_find_by_words__a_title_lifts_the_messages_of_its_thread() -> None:
    say("we talked about trains and rain", thread_id="a", title="Trains")
    say("we talked about trains", thread_id="b")
    assert found("trains") == ["a0", "b0"]


def test_find_by_words__reminders_are_for_the_model_only() -> None:
    thread = make_thread("alice", "t")
    save([a_message(thread, "m", text="<system-reminder>violet</system-reminder>")])
    assert found("violet") == []


def test_find_by_words__beyond_the_limit_the_newest_are_ranked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(make_thread("alice", "t"), 30, text="zebra")
    monkeypatch.setattr(bm25, "MAX_CANDIDATES", 10)
    assert set(found("zebra", limit=50)) == {f"t:{n}" for n in range(20, 30)}


def test_find_by_words__scores_follow_the_order() -> None:
    say("green tea", "black tea with milk", "milk")
    scored = bm25.find_by_words(query.parse_query("tea milk"), SearchScope(), limit=10)
    scores = [one.score for one in scored]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_find_by_words__limit_zero_and_no_words_cost_nothing(statements: Statements) -> None:
    words, none = query.parse_query("tea"), query.parse_query("the")
    with statements() as sent:
        assert bm25.find_by_words(words, SearchScope(), limit=0) == []
        assert bm25.find_by_words(none, SearchScope(), limit=9) == []
    assert sent == []


def test_find_by_words__two_statements_one_for_a_single_word(statements: Statements) -> None:
    say("green tea", title="tea")
    for words, count in (("tea milk -cow", 2), ("tea", 1)):
        asked = query.parse_query(words)
        with statements() as sent:
            bm25.find_by_words(asked, SearchScope(resource_id="alice"), limit=10)
        assert len(sent) == count


@pytest.fixture
def long_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store 300 messages with `tea`, and allow few candidates.

    Every third message also contains `milk`, and two messages contain `saffron`.
    """
    fill(make_thread("alice", "t"), 300, text="tea")
    for word, places in (("milk", range(0, 300, 3)), ("saffron", (7, 150))):
        sql.execute(
            """UPDATE mastra_memory_message SET text = text || ' ' || %s,
                search = to_tsvector('simple', text || ' ' || %s) WHERE id = ANY(%s)""",
            [word, word, [f"t:{place}" for place in places]],
        )
    monkeypatch.setattr(bm25, "MIN_RARE_CANDIDATES", 1)
    monkeypatch.setattr(bm25, "MAX_RARE_CANDIDATES", 40)
    monkeypatch.setattr(bm25, "MAX_CANDIDATES_LONG_SCOPE", 30)


def test_find_by_words__rare_words_select_in_a_long_scope(long_scope: None) -> None:
    assert found("tea saffron", limit=1)[0] in {"t:7", "t:150"}
    assert set(found("tea saffron", limit=2)) == {"t:7", "t:150"}
    assert found("milk saffron tea", limit=1) == ["t:150"]  # a multiple of three


def test_find_by_words__common_words_find_the_newest(long_scope: None) -> None:
    newest = [f"t:{place}" for place in range(299, 209, -1)]
    assert set(found("tea milk", limit=40)) == {key for key in newest if int(key[2:]) % 3 == 0}
    assert found("tea 299 zebra", limit=1) == ["t:299"]


def test_find_by_words__an_old_rare_word_in_a_long_scope(
    long_scope: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25, "MIN_RARE_CANDIDATES", 100)
    assert found("saffron milk tea", limit=2) == ["t:150", "t:7"]


def test_find_by_words__operators_apply_in_a_long_scope(long_scope: None) -> None:
    assert "t:150" not in found("saffron tea -milk", limit=40)
    assert found("saffron tea -milk", limit=1) == ["t:7"]
    assert len(found('"tea 7 saffron" milk', limit=40)) == 1
