"""Fields of a message that a query can name."""

import pytest

from mastra_memory.db import json_text
from mastra_memory.memory import Memory
from mastra_memory.search import fields
from tests.support.factories import a_message, make_thread, save

pytestmark = pytest.mark.django_db

REFUND = {
    "state": "output-error",
    "toolCallId": "1",
    "toolName": "refundPayment",
    "args": {"orderId": "F-20418", "amount": 1299},
    "errorText": "402 card declined",
}
LOOKUP = {
    "state": "result",
    "toolCallId": "2",
    "toolName": "look_up",
    "args": {"city": "Lisbon"},
    "result": {"weather": [{"sky": "overcast"}]},
}


def save_calls() -> None:
    thread = make_thread("alice", "t", title="Orders")
    parts = [
        {"type": "reasoning", "reasoning": "Ponder"},
        {"type": "tool-invocation", "toolInvocation": REFUND},
        {"type": "file", "data": "https://x.example/1", "mimeType": "a/b", "filename": "bill.pdf"},
    ]
    save([a_message(thread, "ask", text="Please refund the declined payment", role="user", at=1)])
    save([a_message(thread, "fail", content={"format": 2, "parts": parts}, role="assistant", at=2)])
    call = [{"type": "tool-invocation", "toolInvocation": LOOKUP}]
    save([a_message(thread, "look", content={"format": 2, "parts": call}, role="assistant", at=3)])


def find(query: str) -> list[str]:
    result = Memory().search(query, resource_id="alice", search_type="text")
    return [hit.id for hit in result.results]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tool:refundPayment", ["fail"]),
        ("tool:refund", ["fail"]),
        ("tool:look_up", ["look"]),
        ("error:402", ["fail"]),
        ('error:"card declined"', ["fail"]),
        ("args:F-20418", ["fail"]),
        ("args:1299", ["fail"]),
        ("args:lisbon", ["look"]),
        ("result:overcast", ["look"]),
        ("error:overcast", []),
        ("file:bill.pdf", ["fail"]),
        ("reasoning:ponder", ["fail"]),
        ("refundPayment", []),
        ("lisbon", []),
        ("ponder", []),
        ("declined", ["ask", "fail"]),
        ("declined -error:402", ["ask"]),
        ("declined role:user", ["ask"]),
        ("declined -role:user", ["fail"]),
        ("role:assistant", ["look", "fail"]),
        ("tool:refund OR tool:look", ["fail", "look"]),
        ("http://x.example", []),
    ],
)
def test_search__finds_fields(query: str, expected: list[str]) -> None:
    save_calls()
    assert sorted(find(query)) == sorted(expected)
    if query == "declined":
        assert find(query) == expected  # a word of the text counts more


def test_search__fields_do_not_make_a_message_longer() -> None:
    thread = make_thread("alice", "t")
    call = LOOKUP | {"result": " ".join(f"word{n}" for n in range(500))}
    parts = [{"type": "text", "text": "green tea"}]
    with_call = [*parts, {"type": "tool-invocation", "toolInvocation": call}]
    save([a_message(thread, "plain", content={"format": 2, "parts": parts}, at=1)])
    save([a_message(thread, "call", content={"format": 2, "parts": with_call}, at=2)])
    result = Memory().search("tea", resource_id="alice", search_type="text")
    assert result.results[0].score == pytest.approx(result.results[1].score)


def test_split_message__limits_the_fields() -> None:
    call = LOOKUP | {"result": [f"word{n}" for n in range(100_000)]}
    content = {"format": 2, "parts": [{"type": "tool-invocation", "toolInvocation": call}]}
    split = fields.split_message("", json_text.dumps(content))
    assert len(split.fields.split()) < fields.MAX_VALUES + 10
    nested: object = "deep"
    for _ in range(50):
        nested = [nested]
    content["parts"][0]["toolInvocation"]["result"] = nested  # type: ignore[index]
    assert "deep" in fields.split_message("", json_text.dumps(content)).fields
