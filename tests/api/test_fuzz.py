"""Random input, the same at every run: saving and listing hold what they promise."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from mastra_memory.models import Message
from tests.conftest import person
from tests.support.api_client import Answer, Api
from tests.support.factories import api_time, make_thread

pytestmark = pytest.mark.slow
SMALL = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
LIST = "threads/t/messages"

texts = st.text(max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool-invocation", "data-x", "reasoning", "tool-call"])},
    optional={"text": values, "toolInvocation": values, "data": values, "args": values},
)
contents = (
    values
    | st.lists(parts, max_size=3)
    | st.fixed_dictionaries(
        {"parts": st.lists(parts, max_size=3)}, optional={"format": values, "metadata": values}
    )
)
messages = st.fixed_dictionaries(
    {"threadId": st.just("t") | values, "resourceId": st.just("r") | values, "content": contents},
    optional={
        "id": values,
        "role": st.sampled_from(["user", "assistant", "tool", "system", "signal"]) | values,
        "createdAt": values | st.just(api_time()),
        "type": values,
        "parts": st.lists(parts, max_size=2),
        "metadata": values,
    },
)
good_messages = st.fixed_dictionaries(
    {
        "id": texts.filter(bool),
        "role": st.sampled_from(["user", "assistant", "tool"]),
        "threadId": st.just("t"),
        "resourceId": st.just("r"),
        "content": st.builds(
            lambda data, metadata: {
                "format": 2,
                "parts": [{"type": "data-x", "data": data}],
                "metadata": metadata,
            },
            values,
            st.dictionaries(texts, values, max_size=3),
        ),
        "createdAt": st.integers(0, 3).map(api_time),
    }
)
queries = st.dictionaries(
    st.sampled_from(
        [
            "page",
            "perPage",
            "orderBy",
            "filter",
            "include",
            "metadata",
            "resourceId",
            "agentId",
            "orderBy[field]",
            "orderBy[direction]",
            "metadata[k]",
            "createdAfter",
            "title",
            "text",
        ]
    ),
    texts | values.map(lambda value: json.dumps(value)),
    max_size=4,
)


def raw(body: Any) -> bytes:
    """A body as a client writes it."""
    return json.dumps(body).encode()


def settled(value: Any) -> Any:
    """What a stored value is by our rule: texts cleaned, numbers as far as a double reaches."""
    if isinstance(value, str):
        return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in value)
    if isinstance(value, dict):
        return {settled(key): settled(part) for key, part in value.items()}
    if isinstance(value, list):
        return [settled(part) for part in value]
    return value if isinstance(value, bool) or value is None else float(value)


def assert_clear(answer: Answer) -> None:
    """Check that the answer is JSON and not a server error."""
    assert answer.status in (200, 400, 403, 404, 409), answer.raw
    assert "error" in answer.body or answer.status == 200


class Fuzz(TestCase):
    """Each example runs in a transaction of its own."""

    api: Api

    @classmethod
    def setUpTestData(cls) -> None:
        cls.api = person("boss", unscoped=True).api
        make_thread("r", "t")

    @SMALL
    @given(st.lists(messages, max_size=3) | values)
    def test_save__anything_is_stored_or_refused_whole(self, batch: Any) -> None:
        answer = self.api.send("POST", "save-messages", raw({"messages": batch}))
        assert_clear(answer)
        stored = answer.body["messages"] if answer.status == 200 else []
        assert Message.objects.count() == len(stored)
        listed = self.api.through(None).get(LIST, {"perPage": 1000})
        assert listed.body["messages"] == stored

    @SMALL
    @given(st.lists(good_messages, max_size=6))
    def test_save__what_is_well_formed_comes_back_equal(self, batch: list[Any]) -> None:
        answer = self.api.send("POST", "save-messages", raw({"messages": batch}))
        assert answer.status == 200, answer.raw
        last = {settled(message["id"]): message for message in batch}
        shown = {message["id"]: message for message in answer.body["messages"]}
        assert shown.keys() == last.keys()
        for name, message in last.items():
            assert settled(shown[name]["content"]) == settled(message["content"])
        order = [message["createdAt"] for message in answer.body["messages"]]
        assert order == sorted(order)

    @SMALL
    @given(st.lists(good_messages, max_size=8), st.integers(1, 4), st.sampled_from(["ASC", "DESC"]))
    def test_list__pages_hold_each_message_once(
        self, batch: list[Any], size: int, direction: str
    ) -> None:
        self.api.send("POST", "save-messages", raw({"messages": batch}))
        order = {"perPage": size, "orderBy": {"direction": direction}}
        pages = [self.api.get(LIST, order | {"page": page}).body for page in range(9)]
        listed = [message["id"] for page in pages for message in page["messages"]]
        whole = self.api.get(LIST, order | {"perPage": 1000}).body["messages"]
        assert listed == [message["id"] for message in whole]
        assert len(listed) == len(set(listed)) == pages[0]["total"]

    @SMALL
    @given(queries)
    def test_list__any_query_is_answered_or_refused(self, query: dict[str, str]) -> None:
        for path in (LIST, "threads"):
            assert_clear(self.api.get(path, query))
            assert_clear(self.api.through(None).get(path, query))
