"""The answer to a search by meaning, as Mastra's own server gave it when it was asked the same."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from mastra_memory.embedding import embedder
from mastra_memory.embedding.embedder import FunctionEmbedder
from mastra_memory.exceptions import AccessDenied
from mastra_memory.memory import Memory
from mastra_memory.types import SearchResult
from tests.conformance.fixture.embedder import embed
from tests.support.factories import a_message, make_thread

pytestmark = pytest.mark.django_db
DEFAULT: Mapping[str, Any] = {"semanticRecall": True}
TALKS = {
    "a": "red fox zero|one thing|two thing|three violet|four thing|five thing|six submarine hull"
    "|seven|eight",
    "b": "zeta|violet guitar solo song|beta|gamma",
}


@pytest.fixture(autouse=True)
def threads(memory_settings: Callable[..., None], db: None) -> Iterator[None]:
    """`a` of a0 … a8, a minute later `b` of b0 … b3, both of `res`, and `x` of another."""
    memory_settings()
    with embedder.override_embedder(
        FunctionEmbedder(lambda texts: [embed(text) for text in texts])
    ):
        say("x", "violet submarine", owner="other")
        say("a", TALKS["a"])
        say("b", TALKS["b"], start=60)
        yield


def say(thread_id: str, texts: str, *, owner: str = "res", start: int = 0) -> None:
    """Save messages called `<thread>0`, `<thread>1`, … a second apart."""
    thread = make_thread(owner, thread_id)
    Memory(options=DEFAULT).save_messages(
        [
            a_message(thread, f"{thread_id}{n}", text=text, at=start + n)
            for n, text in enumerate(texts.split("|"))
        ]
    )


def search(thread_id: str | None = None, **choices: Any) -> SearchResult:
    """A search for a violet submarine through an agent that recalls by default."""
    call: dict[str, Any] = {"resource_id": "res", "thread_id": thread_id} | choices
    return Memory(options=DEFAULT).search("violet submarine", **call)


def shown(result: SearchResult) -> str:
    """`b2[01|3]`: b2 between b0, b1 and b3; `a2` alone has no context at all."""

    def numbers(beside: Any) -> str:
        return "".join(message.id[1:] for message in beside)

    return " ".join(
        f"{hit.id}[{numbers(hit.context.before)}|{numbers(hit.context.after)}]"
        if hit.context
        else hit.id
        for hit in result.results
    )


def test_search__hits_and_the_newest_of_the_thread_last_active() -> None:
    found = search()
    assert shown(found) == "b3[12|] b2[01|3] b1[0|23] b0[|12] a6[45|78] a3[12|45]"
    assert (found.count, found.search_scope, found.search_type) == (6, "resource", "semantic")
    assert {(hit.score, hit.snippet) for hit in found.results} == {(None, None)}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"lastMessages": 3}, "a8[67|] a7[56|8] a6[45|78] a3[12|45]"),
        (
            {"lastMessages": 2, "semanticRecall": {"topK": 2, "messageRange": 2}},
            "a8[67|] a7[56|8] a6[45|78] a3[12|45]",
        ),
        (
            {
                "lastMessages": 2,
                "semanticRecall": {"topK": 1, "messageRange": 1, "scope": "thread"},
            },
            "a8[7|] a7[6|8] a4[3|5] a3[2|4] a2[1|3]",
        ),
        (
            {"lastMessages": 5, "semanticRecall": {"topK": 1, "messageRange": 0}},
            "a8[|] a7[|] a6[|] a5[|] a4[|] a3[|]",
        ),
        (
            {
                "lastMessages": 3,
                "semanticRecall": {"topK": 1, "messageRange": {"before": 2, "after": 1}},
            },
            "a8[67|] a7[56|8] a6[45|7] a3[12|4]",
        ),
        (
            {
                "lastMessages": 3,
                "semanticRecall": {"topK": 1, "messageRange": {"before": 2, "after": 0}},
            },
            "a8[67|] a7[56|8] a6[45|78] a3[12|45]",
        ),
        ({"lastMessages": 0}, "a6[45|78] a3[12|45]"),
        (
            {"lastMessages": False},
            "a8[67|] a7[56|8] a6[45|78] a5[34|67] a4[23|56] a3[12|45] a2[01|34] a1[0|23] a0[|12]",
        ),
    ],
)
def test_search__options_of_the_call(options: Mapping[str, Any], found: str) -> None:
    assert shown(search("a", options=options)) == found


def test_search__limit_cuts_the_oldest() -> None:
    assert shown(search("a", limit=2)) == "a8[67|] a7[56|8]"
    assert search(limit=0).count == 0


def test_search__a_thread_that_is_not_there() -> None:
    assert shown(search("nowhere")) == "a6[45|78] a3[12|45]"
    in_thread = {"semanticRecall": {"topK": 1, "messageRange": 1, "scope": "thread"}}
    found = search("nowhere", options=in_thread)
    assert (found.count, found.search_scope) == (0, "thread")


def test_search__a_resource_without_threads() -> None:
    assert search(resource_id="nobody").count == 0


def test_search__the_thread_of_another() -> None:
    with pytest.raises(AccessDenied):
        search("x")


def test_search__what_the_agent_would_not_recall_has_no_context() -> None:
    say("c", "|".join(["zero", "one", "two violet", *(f"n{n}" for n in range(12))]), start=120)
    agent = Memory(options=DEFAULT)
    found = agent.search(
        "two violet", resource_id="res", thread_id="c", options={"lastMessages": 1}
    )
    assert "c2 " in shown(found) + " "
    assert shown(found).startswith("c14[1213|]")


def test_search__a_title_or_the_id() -> None:
    assert {hit.thread_title for hit in search().results} == {"a", "b"}
    agent = Memory(options=DEFAULT)
    agent.update_thread("b", title="Second")
    assert {hit.thread_title for hit in search().results} == {"a", "Second"}


def test_search__the_text_is_the_first_text_part() -> None:
    thread = make_thread("res", "d")
    two = [{"type": "text", "text": " first "}, {"type": "text", "text": "second"}]
    call = {"state": "call", "toolCallId": "c", "toolName": "t", "args": {}}
    tool = [{"type": "tool-invocation", "toolInvocation": call}]
    Memory(options=DEFAULT).save_messages(
        [
            a_message(thread, "d0", content={"format": 2, "parts": two}, at=200),
            a_message(thread, "d1", content={"format": 2, "parts": tool}, at=201),
            a_message(thread, "d2", content="plain", at=202),
        ]
    )
    found = search("d", options={"lastMessages": 3})
    assert [hit.text for hit in found.results][:3] == ["plain", "", "first"]
