"""Recall by meaning, as an agent asks for it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction

from mastra_memory.db import sql
from mastra_memory.embedding import indexing
from mastra_memory.exceptions import AccessDenied, InvalidInput, ThreadNotFound
from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest, MessageEmbedding, ModelUsage
from mastra_memory.testing import FakeEmbedder
from tests.conftest import Statements
from tests.support.factories import a_message, make_thread, some_messages

pytestmark = pytest.mark.django_db
OPTIONS: dict[str, Any] = {"lastMessages": 3, "semanticRecall": {"topK": 2, "messageRange": 1}}
TALK = [
    "I love tennis",
    "noted tennis",
    "buy some flour",
    "the bakery is closed",
    "trains to Berlin",
    "sleeper from Paris",
    "it rains",
    "take an umbrella",
]


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    """Use the default settings; each test gives its own options."""
    memory_settings()


@pytest.fixture
def model(db: None) -> Iterator[FakeEmbedder]:
    """A fake that makes all vectors."""
    with FakeEmbedder(dimensions=256) as fake:
        yield fake


@pytest.fixture
def memory(model: FakeEmbedder) -> Memory:
    """An agent that recalls, and the thread `t` of m0 … m7."""
    memory = Memory(options=OPTIONS)
    say(memory, "t", TALK)
    return memory


def say(memory: Memory, thread_id: str, texts: list[str], *, resource: str = "alice") -> None:
    """Save messages in a new thread. Their ids are `m0`, `m1`, … in `t`, and `u0`, … in `u`."""
    thread = make_thread(resource, thread_id)
    batch = some_messages(thread, len(texts), prefix="m" if thread_id == "t" else thread_id)
    for message, text in zip(batch, texts, strict=True):
        message["content"] = text
    memory.save_messages(batch)


def recalled(memory: Memory, query: str | None, thread_id: str = "t", **choices: Any) -> list[str]:
    """Ids of a recall."""
    choices.setdefault("resource_id", "alice")
    page = memory.recall(thread_id, vector_search_string=query, **choices)
    return [message.id for message in page.messages]


def test_recall__hits_with_their_neighbours_and_history_each_once(memory: Memory) -> None:
    page = memory.recall("t", resource_id="alice", vector_search_string="tennis")
    assert [m.id for m in page.messages] == ["m0", "m1", "m2", "m5", "m6", "m7"]
    assert (page.total, page.per_page, page.has_more) == (8, 3, True)


def test_recall__hits_alone(memory: Memory) -> None:
    page = memory.recall("t", resource_id="alice", vector_search_string="tennis", per_page=0)
    assert [m.id for m in page.messages] == ["m0", "m1", "m2"]
    assert (page.total, page.per_page, page.has_more) == (0, 0, False)


@pytest.mark.parametrize("query", [None, "", "   "])
def test_recall__nothing_to_look_for_is_plain_history(memory: Memory, query: str | None) -> None:
    assert recalled(memory, query) == ["m5", "m6", "m7"]


@pytest.mark.parametrize("off", [0, False])
def test_recall__history_off_leaves_the_hits(memory: Memory, off: Any) -> None:
    assert recalled(memory, "flour", options={"lastMessages": off, **_top(1, 0)}) == ["m2"]
    assert recalled(memory, None, options={"lastMessages": off}) == []


@pytest.mark.parametrize(
    ("span", "found"),
    [
        (0, ["m2"]),
        (2, ["m0", "m1", "m2", "m3", "m4"]),
        ({"before": 2, "after": 0}, ["m0", "m1", "m2"]),
        ({"before": 0, "after": 1}, ["m2", "m3"]),
    ],
)
def test_recall__message_range(memory: Memory, span: Any, found: list[str]) -> None:
    assert recalled(memory, "flour", per_page=0, options=_top(1, span)) == found


def _top(count: int, span: Any, **more: Any) -> dict[str, Any]:
    return {"semanticRecall": {"topK": count, "messageRange": span, **more}}


def test_recall__top_k_zero_finds_nothing(memory: Memory) -> None:
    assert recalled(memory, "flour", per_page=0, options=_top(0, 1)) == []


@pytest.mark.parametrize("scope", ["thread", "resource"])
@pytest.mark.parametrize("mode", ["vector", "hybrid"])
@pytest.mark.parametrize("number", [2**31, 2**53 - 1, 2**63, 10**30])
@pytest.mark.parametrize("name", ["topK", "messageRange"])
def test_recall__numbers_beyond_all_bounds_mean_everything(
    memory: Memory, scope: str, mode: str, number: int, name: str
) -> None:
    chosen = {"semanticRecall": {"scope": scope, "mode": mode, name: number}}
    found = recalled(memory, "tennis", options=chosen, per_page=0)
    assert found == [f"m{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("name", "number"),
    [("topK", -1), ("topK", 2.5), ("topK", "4"), ("topK", None), ("messageRange", {"before": -1})],
)
def test_recall__invalid_numbers_are_refused(memory: Memory, name: str, number: Any) -> None:
    with pytest.raises(InvalidInput, match="must be a whole number of at least 0"):
        recalled(memory, "tennis", options={"semanticRecall": {name: number}})


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
@pytest.mark.parametrize(
    "query", ["tennis\ud800", "\x00tennis", "\u202etennis", "tennis " * 20_000]
)
def test_recall__odd_text_is_just_text(memory: Memory, mode: str, query: str) -> None:
    chosen = {"semanticRecall": {"mode": mode}}
    assert {"m0", "m1"} <= set(recalled(memory, query, options=chosen, per_page=0))


def test_recall__a_read_right_after_a_save_sees_it(
    memory: Memory, model: FakeEmbedder, statements: Statements
) -> None:
    assert not MessageEmbedding.objects.exists()
    assert "m2" in recalled(memory, "flour")
    assert len(model.texts) == 8
    with statements() as sent:
        recalled(memory, "flour")
    assert len(sent) == 5
    assert len(model.texts) == 8


def test_recall__embeds_a_limited_number_of_messages(memory: Memory, model: FakeEmbedder) -> None:
    say(memory, "long", [f"text {n}" for n in range(60)])
    recalled(memory, "flour")
    assert len(model.texts) == 32
    assert EmbeddingRequest.objects.count() == 36


def test_recall__what_failed_before_is_left_to_the_worker(memory: Memory) -> None:
    EmbeddingRequest.objects.update(error="overloaded")
    assert recalled(memory, "flour", per_page=0) == []


def test_recall__limits_the_time_of_embedding(memory: Memory, model: FakeEmbedder) -> None:
    asked = []

    def remember(texts: Any, *, query: bool, timeout: float) -> Any:
        asked.append((query, timeout))
        return FakeEmbedder.embed(model, texts, query=query, timeout=timeout)

    model.embed = remember  # type: ignore[method-assign]
    recalled(memory, "flour")
    assert asked == [(False, 0.2), (True, 20.0)]


def test_recall__resource_scope_spans_threads_and_no_other_owner(memory: Memory) -> None:
    say(memory, "u", ["tennis tournament", "who won"])
    say(memory, "secret", ["tennis tennis tennis"], resource="bob")
    found = recalled(memory, "tennis", per_page=0, options=_top(9, 0, threshold=0.4))
    assert set(found) == {"m0", "m1", "u0"}


def test_recall__thread_scope_stays_in_the_thread(memory: Memory) -> None:
    say(memory, "u", ["tennis tournament"])
    found = recalled(
        memory, "tennis", per_page=0, options=_top(9, 0, scope="thread", threshold=0.4)
    )
    assert found == ["m0", "m1"]


def test_recall__resource_scope_needs_no_thread(memory: Memory) -> None:
    page = memory.recall("new", resource_id="alice", vector_search_string="flour")
    assert [m.id for m in page.messages][:1] == ["m1"]
    assert (page.total, page.has_more) == (0, False)
    with pytest.raises(ThreadNotFound):
        recalled(memory, "flour", "new", options=_top(1, 0, scope="thread"))
    nothing = memory.recall("new", resource_id="alice")
    assert (nothing.messages, nothing.total, nothing.has_more) == ([], 0, False)


def test_recall__resource_scope_needs_a_resource(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="resourceId"):
        memory.recall("t", vector_search_string="flour")


def test_recall__the_thread_of_another_is_refused(memory: Memory) -> None:
    with pytest.raises(AccessDenied):
        recalled(memory, "flour", resource_id="bob")


def test_recall__threshold_and_filter(memory: Memory) -> None:
    assert recalled(memory, "flour", per_page=0, options=_top(9, 0, threshold=0.5)) == ["m2"]
    assert recalled(memory, "flour", per_page=0, options=_top(9, 0, threshold=1.1)) == []
    memory.update_thread("t", metadata={"topic": "baking"})
    say(memory, "u", ["more flour"])
    by_topic = _top(9, 0, threshold=0.4, filter={"topic": "baking"})
    assert recalled(memory, "flour", per_page=0, options=by_topic) == ["m2"]


def test_recall__hybrid_finds_by_words_what_meaning_misses(
    memory: Memory, model: FakeEmbedder
) -> None:
    far, near = [1.0] + [0.0] * 255, [0.0] * 255 + [1.0]
    model.vectors = {**dict.fromkeys(TALK, far), "umbrella": near, "it rains": near}
    assert recalled(memory, "umbrella", per_page=0, options=_top(1, 0)) == ["m6"]
    assert recalled(memory, "umbrella", per_page=0, options=_top(1, 0, mode="hybrid")) == ["m7"]


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_recall__read_only_writes_nothing(memory: Memory, model: FakeEmbedder, mode: str) -> None:
    indexing.embed_pending(seconds=60)
    say(memory, "u", ["flour again"])
    model.texts.clear()
    model.tokens_each = 7
    looking = Memory(options={**OPTIONS, "readOnly": True})
    with transaction.atomic():
        sql.execute("SET TRANSACTION READ ONLY")
        found = recalled(looking, "flour", options={"semanticRecall": {"mode": mode}})
    assert "m2" in found
    assert (model.texts, model.queries) == ([], ["flour"])
    assert EmbeddingRequest.objects.count() == 1
    assert not ModelUsage.objects.exists()


@pytest.mark.parametrize(("mode", "count"), [("vector", 5), ("hybrid", 9)])
def test_recall__statements_do_not_grow(
    memory: Memory, statements: Statements, mode: str, count: int
) -> None:
    say(memory, "long", [f"flour {n}" for n in range(60)])
    indexing.embed_pending(seconds=60)
    recalled(memory, "flour", options={"semanticRecall": {"mode": "hybrid"}})
    for top_k in (1, 40):
        chosen = {"semanticRecall": {"mode": mode, "topK": top_k}}
        with statements() as sent:
            recalled(memory, "flour", options=chosen)
        assert len(sent) <= count


def test_recall__returns_and_records_usage(memory: Memory, model: FakeEmbedder) -> None:
    indexing.embed_pending(seconds=60)
    model.tokens_each = 7
    page = memory.recall("t", resource_id="alice", vector_search_string="flour")
    assert page.usage_tokens == 7
    assert ModelUsage.objects.get().resource_id == "alice"


def test_recall__a_tool_result_comes_with_its_call(model: FakeEmbedder) -> None:
    memory = Memory(options={"lastMessages": 0, **_top(1, 0)})
    thread = make_thread("alice", "t")
    call = {"state": "call", "toolCallId": "c1", "toolName": "weather", "args": {"city": "Rome"}}
    result = {**call, "state": "result", "result": "sunny", "args": {}}
    asking = {"format": 2, "parts": [_text("let me look"), _tool(call)]}
    telling = {"format": 2, "parts": [_text("sunny in Rome"), _tool(result)]}
    memory.save_messages(
        [
            a_message(thread, "question", text="what about it", at=0),
            a_message(thread, "call", content=asking, role="assistant", at=1),
            a_message(thread, "result", content=telling, role="tool", at=2),
            a_message(thread, "answer", text="bring a hat", role="assistant", at=3),
        ]
    )
    assert recalled(memory, "sunny Rome") == ["call", "result"]
    assert recalled(memory, "let me look") == ["call", "result"]
    assert recalled(memory, "bring hat") == ["answer"]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool(invocation: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool-invocation", "toolInvocation": invocation}


def test_recall__reminders_among_the_neighbours_are_hidden(memory: Memory) -> None:
    thread = memory.get_thread("t")
    hint = "<system-reminder>be kind</system-reminder>"
    memory.save_messages([a_message(thread, "hint", text=hint, at=2.5)])
    assert recalled(memory, "flour", per_page=0, options=_top(1, 1)) == ["m1", "m2"]


def test_save_messages__without_recall_wants_no_vectors(model: FakeEmbedder) -> None:
    thread = make_thread("alice", "t")
    Memory(options={}).save_messages([a_message(thread, "m")])
    Memory(options={**OPTIONS, "readOnly": True}).save_messages([a_message(thread, "n")])
    Memory(options=OPTIONS).persist_messages([a_message(thread, "o")])
    assert not EmbeddingRequest.objects.exists()


def test_clone_thread__copies_vectors_without_embedding(
    memory: Memory, model: FakeEmbedder
) -> None:
    recalled(memory, "flour")
    say(memory, "late", ["x"])
    model.texts.clear()
    clone = memory.clone_thread("t", resource_id="bob")
    found = recalled(memory, "flour", clone.thread.id, resource_id="bob", per_page=0)
    assert clone.message_id_map["m2"] in found
    assert model.texts == []
    copies = MessageEmbedding.objects.filter(thread_id=clone.thread.id)
    assert set(copies.values_list("resource_id", flat=True)) == {"bob"}
    assert copies.count() == 8


def test_clone_thread__copies_pending_embedding_requests(memory: Memory) -> None:
    clone = memory.clone_thread("t")
    assert EmbeddingRequest.objects.filter(thread_id=clone.thread.id).count() == 8


def test_update_messages__asks_for_vectors_of_the_new_text(memory: Memory) -> None:
    recalled(memory, "flour")
    memory.update_messages(
        [{"id": "m7", "content": {"content": "yeast", "parts": [_text("yeast")]}}]
    )
    assert recalled(memory, "yeast", per_page=0, options=_top(1, 0)) == ["m7"]


def test_delete_messages__a_deleted_hit_makes_room(memory: Memory) -> None:
    assert recalled(memory, "tennis", per_page=0, options=_top(1, 0)) == ["m1"]
    memory.delete_messages(["m1"])
    assert recalled(memory, "tennis", per_page=0, options=_top(1, 0)) == ["m0"]
