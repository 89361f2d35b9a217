"""Search over HTTP."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.embedding import embedder
from mastra_memory.exceptions import ProviderUnavailable
from mastra_memory.testing import FakeEmbedder
from tests.conftest import Person
from tests.support.api_client import Api, fields_of
from tests.support.factories import a_message, make_thread

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    """One agent that recalls by meaning, one that does not."""
    memory_settings(AGENTS={"test-agent": {}, "recaller": {"semanticRecall": True}})


def say(api: Api, thread_id: str, owner: str, texts: list[str], title: str = "") -> None:
    """Save messages `<thread>0`, `<thread>1` and so on."""
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


ODD = [
    *(
        "\x00",
        "tea\x00",
        "%",
        "%s %(x)s",
        "\\",
        '"',
        '""',
        '-""',
        "-tea",
        "--tea",
        "- tea",
        " \t\n",
    ),
    *("'; DROP TABLE x; --", "' OR 1=1 --", "a:* & b:A | !c <-> (d)", ":*", "((((", "'" * 999),
    *(
        "👩\u200d👩\u200d👧",
        "\u202eabc",
        "שלום עולם",
        "ß ﬁ İ ı",
        "\u200b",
        "中" * 5_000,
        "<script>",
    ),
    *("tea " * 25_000, "x" * 100_000, "e\u0301" * 3_000, "-" * 500, "a" * 2_046 + " b", '"tea'),
    *("http://x.y/z?a=b&c=d#e", "foo@bar.com", "1e400 0x1f -5 +5", "$1 {} %d", "NULL", "-x " * 999),
]


@pytest.mark.parametrize("kind", ["text", "semantic", "hybrid", None])
def test_search__odd_words_are_just_words(api: Api, kind: str | None) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["green tea", "שלום"])
    for words in ODD:
        search(api, words, **({"searchType": kind} if kind else {}))


@pytest.mark.parametrize("kind", ["text", "hybrid"])
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("tea", {"t0", "t1", "t2"}),
        ('"green tea"', {"t0"}),
        ("tea -green", {"t1"}),
        ('tea -"green tea"', {"t1", "t2"}),
        ("creme brulee", {"t3"}),
        ("CRÈME", {"t3"}),
        ("running", {"t4"}),
        ('"tea nowhere"', set()),
    ],
)
def test_search__phrases_minus_accents_and_endings(
    api: Api, kind: str, words: str, found: set[str]
) -> None:
    api = api.through("recaller")
    texts = ["Green tea", "tea for two", "tea, green as grass", "Crème brûlée", "he runs"]
    say(api, "t", "alice", texts)
    best = search(api, words, searchType=kind, limit=len(found))
    assert {hit["id"] for hit in best["results"]} == found


def test_search__the_language_is_that_of_the_settings(
    api: Api, memory_settings: Callable[..., None]
) -> None:
    memory_settings(SEARCH_LANGUAGE="german")
    say(api, "t", "alice", ["Die Häuser sind alt", "running"])
    assert search(api, "haus")["count"] == 1
    assert search(api, "run")["count"] == 0


def test_search__a_word_that_is_nowhere_finds_nothing_one_of_a_title_its_thread(api: Api) -> None:
    say(api, "t", "alice", ["green tea", "black coffee"], title="Breakfast in Porto")
    assert search(api, "zebra", searchType="text") == {
        "results": [],
        "count": 0,
        "query": "zebra",
        "searchScope": "resource",
        "searchType": "text",
    }
    assert [hit["id"] for hit in search(api, "porto", searchType="text")["results"]] == ["t1"]


@pytest.mark.parametrize("kind", ["text", "semantic", "hybrid"])
def test_search__a_hit_has_all_that_is_shown(api: Api, kind: str) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["rain again", "green <tea>", "the train is late"], title="Drinks")
    (hit,) = search(api, "tea", searchType=kind, limit=1)["results"]
    assert 0 < hit.pop("score")
    assert hit.pop("snippet").replace("mark>", "b>") in (
        "green &lt;<b>tea</b>&gt;",
        "green &lt;tea&gt;",
    )
    neighbours = [
        {
            "id": f"t{n}",
            "role": "user",
            "content": text,
            "createdAt": f"2024-01-01T00:00:0{n}.000Z",
        }
        for n, text in ((0, "rain again"), (2, "the train is late"))
    ]
    assert hit == {
        "id": "t1",
        "role": "user",
        "content": "green <tea>",
        "createdAt": "2024-01-01T00:00:01.000Z",
        "threadId": "t",
        "threadTitle": "Drinks",
        "context": {"before": neighbours[:1], "after": neighbours[1:]},
    }


@pytest.mark.parametrize("kind", ["text", "semantic", "hybrid", None])
@pytest.mark.parametrize(("limit", "count"), [(0, 0), (2, 2), (3, 3), (1_000_000_000, 4)])
def test_search__limit(api: Api, kind: str | None, limit: int, count: int) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", [f"tea {n}" for n in range(4)])
    more = {"searchType": kind} if kind else {}
    assert search(api, "tea", limit=limit, **more)["count"] == count


@pytest.mark.parametrize("limit", [-1, 2.5, 10**30, "NaN", "many"])
def test_search__a_limit_that_is_none_is_refused(api: Api, limit: Any) -> None:
    asked = {"searchQuery": "x", "resourceId": "alice", "limit": limit}
    assert fields_of(api.get("search", asked)) == ["limit"]


def each(name: str, status: int, *values: Any) -> list[tuple[dict[str, Any], int]]:
    """A case for each value of an option, with the status it is answered."""
    return [({name: value}, status) for value in values]


@pytest.mark.parametrize(
    ("recall", "status"),
    [
        *each("topK", 200, 0, 1_000, 2**31, 2**53, 2**63),
        *each("topK", 400, -1, 2.5, "4", None, True, [], {}, 1e300),
        *each("messageRange", 200, 0, 2**63, {}, {"before": 2**63}),
        *each("messageRange", 400, -1, 1.5, "1", {"before": -1}, [], None),
        *each("threshold", 200, -1, 0, 1.1, 1e308, None),
        *each("threshold", 400, "a", True, []),
        *each("scope", 200, "thread", "resource"),
        *each("mode", 400, "magic", 1, []),
        *each("filter", 200, None, {}, {"a": None}, {"": 1}, {"a..b": 1}),
        *each("filter", 400, 1, "x", [1], {"$or": []}, {"a": {"$gt": None}}),
    ],
)
def test_search__recall_of_any_kind_is_done_or_refused(
    api: Api, recall: dict[str, Any], status: int
) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["green tea", "black coffee"])
    config = {"memoryConfig": {"semanticRecall": recall}}
    for kind in ({"searchType": "semantic"}, {"searchType": "hybrid"}, {"threadId": "t"}):
        asked = {"searchQuery": "tea", "resourceId": "alice"} | config | kind
        answer = api.get("search", asked)
        assert answer.status == status, answer.raw


def test_search__threshold_and_filter_choose(api: Api) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["green tea", "black coffee"])
    api.patch("threads/t", {"metadata": {"kind": "drinks", "tags": ["hot"]}})

    def count(**recall: Any) -> int:
        chosen = {"semanticRecall": recall}
        found = search(api, "green tea", searchType="semantic", memoryConfig=chosen)
        return int(found["count"])

    assert (count(threshold=-1), count(threshold=0.99), count(threshold=1.1)) == (2, 1, 0)
    assert count(filter={"kind": "drinks", "tags": {"$in": ["hot", "cold"]}}) == 2
    assert count(filter={"$or": [{"kind": "food"}, {"tags": {"$size": 0}}]}) == 0


def test_search__a_filter_that_cannot_be_read_names_its_place(api: Api) -> None:
    config = '{"semanticRecall": {"filter": {"n": {"$near": 1}}}}'
    asked = {"searchQuery": "x", "resourceId": "alice", "searchType": "semantic"}
    answer = api.through("recaller").get("search", asked | {"memoryConfig": config})
    assert answer.status == 400
    assert answer.body["issues"][0]["field"] == "filter.n.$near"


def test_search__a_wrong_vector_length_fails_only_semantic_search(
    api: Api,
) -> None:
    api = api.through("recaller")
    with FakeEmbedder(dimensions=8):
        say(api, "t", "alice", ["green tea"])
        search(api, "tea", searchType="semantic")
    answer = api.get("search", {"searchQuery": "tea", "resourceId": "alice"})
    assert answer.status == 503
    assert "256 dimensions, but the stored ones have 8" in answer.body["error"]
    assert search(api, "tea", searchType="hybrid")["count"] == 1


@pytest.mark.parametrize(
    ("error", "status"), [(ProviderUnavailable("down"), 503), (ValueError("odd"), 502)]
)
def test_search__a_failing_embedder_fails_only_semantic_search(
    api: Api, error: Exception, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "RETRY_DELAYS_SECONDS", ())
    api = api.through("recaller")
    say(api, "t", "alice", ["green tea"])
    with FakeEmbedder(error=error):
        asked = {"searchQuery": "tea", "resourceId": "alice", "searchType": "semantic"}
        answer = api.get("search", asked)
        assert (answer.status, list(answer.body)) == (status, ["error"])
        assert search(api, "tea", searchType="hybrid")["count"] == 1


def test_search__a_transferred_thread_is_found_without_new_embeddings(
    api: Api,
) -> None:
    api = api.through("recaller")
    with FakeEmbedder() as model:
        say(api, "t", "alice", ["green tea"])
        search(api, "tea", searchType="semantic")
        assert api.post("threads/t/transfer", {"resourceId": "bob"}).status == 200
        for kind in ("text", "semantic", "hybrid"):
            assert search(api, "green tea", searchType=kind)["count"] == 0
            assert search(api, "green tea", "bob", searchType=kind)["count"] == 1
    assert model.texts == ["green tea"]


def test_search__what_is_deleted_makes_room(api: Api) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["blue", "red"])
    say(api, "u", "alice", ["blue as the sea"])

    def best() -> list[str]:
        found = search(api, "blue", searchType="semantic", limit=1)
        return [hit["id"] for hit in found["results"]]

    assert best() == ["t0"]
    assert api.post("messages/delete", {"messageIds": ["t0"]}).status == 200
    assert best() == ["u0"]
    assert api.delete("threads/u").status == 200
    assert best() == ["t1"]


def test_search__an_edit_is_found_by_its_new_text(api: Api) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["blue", "red"])
    assert search(api, "blue", searchType="semantic", limit=1)["results"][0]["id"] == "t0"
    thread = {"threadId": "t", "resourceId": "alice", "role": "user"}
    edited = [{"id": "t0", "content": "bicycle"} | thread, {"id": "t1", "content": "blue"} | thread]
    assert api.post("save-messages", {"messages": edited}).status == 200
    for kind in ("text", "semantic", "hybrid"):
        assert search(api, "blue", searchType=kind, limit=1)["results"][0]["id"] == "t1"


def test_search__a_clone_is_found_without_new_embeddings(api: Api) -> None:
    api = api.through("recaller")
    with FakeEmbedder() as model:
        say(api, "t", "alice", ["green tea"])
        search(api, "tea", searchType="semantic")
        assert api.post("threads/t/clone", {"newThreadId": "copy"}).status == 200
        found = search(api, "green tea", searchType="semantic")
        assert {hit["threadId"] for hit in found["results"]} == {"t", "copy"}
    assert model.texts == ["green tea"]


def test_search__says_how_a_time_was_understood(api: Api) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["green tea", "black coffee"])
    config = json.dumps(
        {"semanticRecall": {"time": {"now": "2024-01-02T01:00:00", "timeZone": "Asia/Tokyo"}}}
    )
    for kind in ("text", "semantic", "hybrid"):
        found = search(api, "tea yesterday", searchType=kind, memoryConfig=config)
        assert found["interpretedTime"] == [
            {
                "text": "yesterday",
                "start": "2023-12-31T15:00:00.000Z",
                "end": "2024-01-01T15:00:00.000Z",
            }
        ]


def test_search__is_silent_about_time_unless_asked(api: Api) -> None:
    api = api.through("recaller")
    say(api, "t", "alice", ["green tea", "black coffee"])
    off = json.dumps({"semanticRecall": {"time": False}})
    assert "interpretedTime" not in search(api, "tea yesterday")
    assert "interpretedTime" not in search(api, "tea", searchType="hybrid")
    assert "interpretedTime" not in search(
        api, "tea yesterday", searchType="hybrid", memoryConfig=off
    )


@pytest.mark.parametrize(
    ("time", "field"),
    [
        ("yes", "time"),
        ({"timeZone": "Asia/Nowhere"}, "time.time_zone"),
        ({"timeZone": "../../etc/passwd"}, "time.time_zone"),
        ({"now": "yesterday"}, "time.now"),
        ({"now": "0001-01-01"}, "time.now"),
    ],
)
def test_search__refuses_invalid_options_of_time(api: Api, time: Any, field: str) -> None:
    config = json.dumps({"semanticRecall": {"time": time}})
    query = {"searchQuery": "tea", "resourceId": "alice", "memoryConfig": config}
    answer = api.through("recaller").get("search", query)
    assert answer.status == 400 and f"semantic_recall.{field}" in str(answer.body)
