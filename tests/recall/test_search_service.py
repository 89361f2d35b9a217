"""What `Memory.search` answers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mastra_memory.exceptions import AccessDenied, FeatureDisabled, InvalidInput, ThreadNotFound
from mastra_memory.memory import Memory
from mastra_memory.testing import FakeEmbedder
from mastra_memory.types import SearchResult
from tests.conftest import Statements
from tests.support.factories import a_message, make_thread, moment

pytestmark = pytest.mark.django_db
TEXTS = ["apples are red", "pears are green", "I baked an apple pie", "trains to Berlin", "bye"]


@pytest.fixture(autouse=True)
def bare(memory_settings: Callable[..., None]) -> Iterator[FakeEmbedder]:
    """Nothing but what a test says, and a fake that makes all vectors."""
    memory_settings()
    with FakeEmbedder(dimensions=256) as model:
        yield model


def filled(**options: Any) -> Memory:
    """An agent, and `t` of t0 … t4 titled Fruit, `u` of u0 untitled, `b` of b0 of bob."""
    memory = Memory(options=options)
    for thread_id, owner, title, texts in (
        ("t", "alice", "Fruit", TEXTS),
        ("u", "alice", "", ["an apple a day"]),
        ("b", "bob", "", ["apple apple apple"]),
    ):
        thread = make_thread(owner, thread_id, title=title)
        memory.save_messages(
            [a_message(thread, f"{thread_id}{n}", text=s, at=n) for n, s in enumerate(texts)]
        )
    return memory


@pytest.fixture
def plain(db: None) -> Memory:
    """An agent without semantic recall."""
    return filled()


@pytest.fixture
def recalling(db: None) -> Memory:
    """An agent with it."""
    return filled(semanticRecall={"topK": 2, "messageRange": 1})


def ids(result: SearchResult) -> list[str]:
    """Ids of the results."""
    return [hit.id for hit in result.results]


def test_search__without_vectors_it_is_by_words_newest_first(plain: Memory) -> None:
    found = plain.search("apple", resource_id="alice")
    assert ids(found) == ["t2", "u0", "t0"]
    assert (found.search_type, found.search_scope, found.count) == ("text", "resource", 3)
    assert {(hit.score, hit.snippet) for hit in found.results} == {(None, None)}


@pytest.mark.parametrize("kind", [None, "text"])
def test_search__a_word_that_occurs_nowhere_finds_nothing(plain: Memory, kind: Any) -> None:
    assert plain.search("zebra", resource_id="alice", search_type=kind).count == 0


def test_search__words_of_a_title_count(plain: Memory) -> None:
    assert ids(plain.search("fruit", resource_id="alice", search_type="text")) == ["t4"]


def test_search__nothing_of_another_owner(plain: Memory) -> None:
    for kind in (None, "text"):
        found = plain.search("apple", resource_id="alice", search_type=kind)
        assert all(hit.resource_id == "alice" for hit in found.results)
    assert plain.search("apple", resource_id="nobody").count == 0


def test_search__a_hit_has_all_that_is_shown(plain: Memory) -> None:
    found = plain.search("baking", resource_id="alice", search_type="text")
    (hit,) = found.results
    assert (hit.id, hit.role, hit.text) == ("t2", "user", "I baked an apple pie")
    assert (hit.thread_id, hit.thread_title, hit.created_at) == ("t", "Fruit", moment(2))
    assert hit.snippet == "I <mark>baked</mark> an apple pie"
    assert hit.score is not None and hit.score > 0
    assert hit.context is not None
    assert [m.id for m in hit.context.before] == ["t0", "t1"]
    assert next((m.id, m.role, m.text) for m in hit.context.after) == ("t3", "user", TEXTS[3])


def test_search__a_thread_without_a_title_is_named_by_its_id(plain: Memory) -> None:
    (hit,) = plain.search("day", resource_id="alice").results
    assert hit.thread_title == "u"


def test_search__best_first_when_a_kind_is_asked_for(plain: Memory) -> None:
    found = plain.search("apple pie", resource_id="alice", search_type="text")
    assert ids(found)[0] == "t2"
    scores = [hit.score or 0.0 for hit in found.results]
    assert scores == sorted(scores, reverse=True)


def test_search__limit_keeps_the_best(plain: Memory) -> None:
    assert ids(plain.search("apple pie", resource_id="alice", limit=1)) == ["t2"]
    assert plain.search("apple", resource_id="alice", limit=0).count == 0


def test_search__within_a_thread(plain: Memory) -> None:
    found = plain.search("apple", resource_id="alice", thread_id="u")
    assert (ids(found), found.search_scope) == (["u0"], "thread")


def test_search__an_unknown_thread_and_that_of_another(plain: Memory) -> None:
    with pytest.raises(ThreadNotFound):
        plain.search("apple", resource_id="alice", thread_id="nowhere")
    with pytest.raises(AccessDenied):
        plain.search("apple", resource_id="alice", thread_id="b")


@pytest.mark.parametrize("kind", ["semantic", "hybrid"])
def test_search__by_meaning_needs_semantic_recall(plain: Memory, kind: Any) -> None:
    with pytest.raises(FeatureDisabled):
        plain.search("apple", resource_id="alice", search_type=kind)


@pytest.mark.parametrize(
    ("faulty", "field"),
    [
        ({"query": ""}, "searchQuery"),
        ({"limit": -1}, "limit"),
        ({"search_type": "magic"}, "searchType"),
    ],
)
def test_search__faults_name_their_field(plain: Memory, faulty: Any, field: str) -> None:
    call = {"query": "apple", "resource_id": "alice"} | faulty
    with pytest.raises(InvalidInput) as refused:
        plain.search(**call)
    assert [issue.field for issue in refused.value.issues] == [field]


def test_search__by_meaning(recalling: Memory) -> None:
    found = recalling.search("green pears", resource_id="alice", search_type="semantic", limit=1)
    assert (ids(found), found.search_type) == (["t1"], "semantic")
    (hit,) = found.results
    assert hit.score is not None and 0.5 < hit.score <= 1
    assert hit.snippet == "pears are green"


def test_search__by_meaning_sees_what_was_saved_just_now(recalling: Memory) -> None:
    recalling.search("pears", resource_id="alice", search_type="semantic")
    recalling.save_messages([a_message(make_thread("alice", "n"), "n0", text="quince jelly")])
    found = recalling.search("quince jelly", resource_id="alice", search_type="semantic", limit=1)
    assert ids(found) == ["n0"]


def test_search__both(recalling: Memory, bare: FakeEmbedder) -> None:
    found = recalling.search("trains to Berlin", resource_id="alice", search_type="hybrid", limit=2)
    assert ids(found)[0] == "t3"
    assert found.results[0].snippet == "<mark>trains</mark> to <mark>Berlin</mark>"
    assert found.search_type == "hybrid"


def test_search__both_goes_on_with_words_when_the_embedder_is_down(
    recalling: Memory, bare: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mastra_memory.embedding import embedder
    from mastra_memory.exceptions import ProviderUnavailable

    monkeypatch.setattr(embedder, "RETRY_DELAYS_SECONDS", ())
    bare.error = ProviderUnavailable("down")
    assert ids(recalling.search("berlin", resource_id="alice", search_type="hybrid"))[0] == "t3"
    with pytest.raises(ProviderUnavailable):
        recalling.search("berlin", resource_id="alice", search_type="semantic")


def test_search__threshold_and_filter_of_the_options(recalling: Memory) -> None:
    recalling.update_thread("u", metadata={"kind": "proverb"})
    for kind in ("text", "semantic", "hybrid"):
        found = recalling.search(
            "apple",
            resource_id="alice",
            search_type=kind,
            options={"semanticRecall": {"filter": {"kind": "proverb"}}},
        )
        assert ids(found) == ["u0"]


@pytest.mark.parametrize(("kind", "count"), [("text", 6), ("semantic", 5), ("hybrid", 9)])
def test_search__statements_do_not_grow(
    recalling: Memory, statements: Statements, kind: Any, count: int
) -> None:
    recalling.search("apple", resource_id="alice", search_type=kind)
    with statements() as sent:
        recalling.search("apple", resource_id="alice", search_type=kind, limit=50)
    assert len(sent) <= count
