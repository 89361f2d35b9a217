"""Search over HTTP."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.embedding import embedder
from mastra_memory.exceptions import ProviderUnavailable
from mastra_memory.testing import FakeEmbedder
from tests.calling import Api
from tests.conftest import Person
from tests.factories import a_message, make_thread

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    """One agent that recalls by meaning, one that does not."""
    memory_settings(AGENTS={"test-agent": {}, "recaller": {"semanticRecall": True}})


def say(api: Api, thread_id: str, owner: str, texts: list[str], title: str = "") -> None:
    """Save messages `<thread>0`, `<thread>1`, …"""
    thread = make_thread(owner, thread_id, title=title)
    batch = [a_message(thread, f"{thread_id}{n}", text=t, at=n) for n, t in enumerate(texts)]
    assert api.post("save-messages", {"messages": batch}).status == 200


def search(api: Api, words: str, owner: str = "alice", **more: Any) -> Any:
    """The body of a search."""
    answer = api.get("search", {"searchQuery": words, "resourceId": owner, **more})
    assert answer.status == 200, answer.body
    return answer.body


def test_search__words(api: Api) -> None:
    say(api, "t", "alice", ["green tea", "black coffee"], title="Drinks")
    assert search(api, "tea") == {
        "results": [
            {
                "id": "t0",
                "role": "user",
                "content": "green tea",
                "createdAt": "2024-01-01T00:00:00.000Z",
                "threadId": "t",
                "threadTitle": "Drinks",
                "context": {
                    "before": [],
                    "after": [
                        {
                            "id": "t1",
                            "role": "user",
                            "content": "black coffee",
                            "createdAt": "2024-01-01T00:00:01.000Z",
                        }
                    ],
                },
            }
        ],
        "count": 1,
        "query": "tea",
        "searchScope": "resource",
        "searchType": "text",
    }


@pytest.mark.parametrize("kind", ["text", "semantic", "hybrid"])
def test_search__a_kind_brings_score_and_snippet(api: Api, kind: str) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["green <b>tea</b>", "black coffee"])
    found = search(api, "tea", searchType=kind, limit=1)
    (hit,) = found["results"]
    assert (hit["id"], found["searchType"], found["count"]) == ("t0", kind, 1)
    assert hit["score"] > 0
    assert "<b>" not in hit["snippet"]
    assert set(hit["context"]) == {"before", "after"}


@pytest.mark.parametrize("kind", [None, "text", "semantic", "hybrid"])
def test_search__others_are_never_in_it(alice: Person, bob: Person, kind: str | None) -> None:
    his, hers = bob.api.through("recaller"), alice.api.through("recaller")
    say(his, "b", bob.resource_id, ["violet secret"], title="Violet secret")
    say(hers, "a", alice.resource_id, ["violet flower"])
    more = {"searchType": kind} if kind else {}
    for owner in (alice.resource_id, bob.resource_id):
        answer = hers.get("search", {"searchQuery": "violet secret", "resourceId": owner, **more})
        assert answer.status == 200
        assert [hit["id"] for hit in answer.body["results"]] == ["a0"]
        assert b"b0" not in answer.raw


def test_search__the_thread_of_another_is_refused(alice: Person, bob: Person) -> None:
    say(bob.api, "b", bob.resource_id, ["violet secret"])
    asked = {"searchQuery": "violet", "resourceId": bob.resource_id, "threadId": "b"}
    answer = alice.api.get("search", asked)
    assert answer.status == 403
    assert b"secret" not in answer.raw


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"searchQuery": "x"}, 400),
        ({"resourceId": "alice"}, 400),
        ({"searchQuery": "", "resourceId": "alice"}, 400),
        ({"searchQuery": "x", "resourceId": "alice", "limit": "many"}, 400),
        ({"searchQuery": "x", "resourceId": "alice", "searchType": "magic"}, 400),
        ({"searchQuery": "x", "resourceId": "alice", "searchType": "semantic"}, 400),
        ({"searchQuery": "x", "resourceId": "alice", "threadId": "nowhere"}, 404),
        ({"searchQuery": "x", "resourceId": "alice", "memoryConfig": "{bad"}, 400),
    ],
)
def test_search__refusals(api: Api, query: dict[str, str], status: int) -> None:
    answer = api.get("search", query)
    assert answer.status == status
    assert isinstance(answer.body["error"], str)


@pytest.mark.parametrize(
    "words", ["\x00", "'; DROP TABLE x; --", "a & | ! ( ) : *", "%", "\\", '"']
)
def test_search__odd_words_are_just_words(api: Api, words: str) -> None:
    for kind in ("text", "semantic", "hybrid"):
        search(api.through("recaller"), words, searchType=kind)


def test_search__a_filter_that_cannot_be_read_names_its_place(api: Api) -> None:
    config = '{"semanticRecall": {"filter": {"n": {"$near": 1}}}}'
    asked = {"searchQuery": "x", "resourceId": "alice", "searchType": "semantic"}
    answer = api.through("recaller").get("search", asked | {"memoryConfig": config})
    assert answer.status == 400
    assert answer.body["issues"][0]["field"] == "filter.n.$near"


def test_search__vectors_of_another_length_are_told_by_meaning_and_not_missed_with_words(
    api: Api,
) -> None:
    api = api.through("recaller")
    with FakeEmbedder(dimensions=8):
        say(api, "t", "alice", ["green tea"])
        search(api, "tea", searchType="semantic")
    answer = api.get("search", {"searchQuery": "tea", "resourceId": "alice"})
    assert answer.status == 503
    assert "256 dimensions now, but stored are vectors of 8" in answer.body["error"]
    assert search(api, "tea", searchType="hybrid")["count"] == 1


@pytest.mark.parametrize(
    ("error", "status"), [(ProviderUnavailable("down"), 503), (ValueError("odd"), 502)]
)
def test_search__an_embedder_that_fails_is_told_by_meaning_and_not_missed_with_words(
    api: Api, error: Exception, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "RETRY_AFTER", ())
    api = api.through("recaller")
    say(api, "t", "alice", ["green tea"])
    with FakeEmbedder(error=error):
        asked = {"searchQuery": "tea", "resourceId": "alice", "searchType": "semantic"}
        answer = api.get("search", asked)
        assert (answer.status, list(answer.body)) == (status, ["error"])
        assert search(api, "tea", searchType="hybrid")["count"] == 1
