"""Hostile input in every place of every route: one clear refusal or stored by rule, never a 500."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mastra_memory.types import StoredThread
from tests.api.routes import ROUTES
from tests.support.api_client import Answer, Api, fields_of
from tests.support.factories import Json, a_message, make_record, make_thread, save

pytestmark = pytest.mark.slow
KEYS = [key for key in ROUTES if "network/" not in key]
"""The network twins run the same code."""
NESTED_LIST = "[" * 1000 + "]" * 1000
NESTED_OBJECT = '{"a":' * 1000 + "1" + "}" * 1000
HUGE = str(10**400)
# As they stand in a body: JSON texts.
VALUES = (
    *(json.dumps(text) for text in ("", " ", "\x00", "a/b", "..", "%2e", "'; --", "i" * 300)),
    *(json.dumps(text) for text in ("i" * 1025, "2024-02-30", "0000-01-01", "+20000-01-01")),
    '"\\ud800"',
    *("null", "true", "-1", "1.5", "1e400", "-1e400", HUGE, str(2**70), str(2**53), "1e308"),
    *("[]", "{}", "[[]]", "[null]", '["a",5]', '{"__proto__":1}', '{"a.b":{"$gt":1}}'),
    *('{"\\u0000":"\\ud800"}', '{"type":["x"]}', '{"id":{}}', NESTED_LIST, NESTED_OBJECT),
)
ODD = (
    '""',
    '"\\u0000"',
    "null",
    "true",
    "1.5",
    "1e400",
    HUGE,
    "[]",
    "{}",
    '[{"a":[]}]',
    NESTED_LIST,
)
# As they stand in a query string.
TEXTS = (
    *("", " ", "\x00", "\ufffd", "a/b", "..", "%2e", "'; --", "%", "_", "i" * 1025, "undefined"),
    *("-1", "1.5", "1e400", HUGE, str(2**70), "nan", "true", "٣", "2024-02-30", "0000-01-01"),
    *(
        "[]",
        "{}",
        "null",
        "{bad",
        '"\\ud800"',
        '{"a":"\\u0000"}',
        '{"field":[]}',
        NESTED_LIST,
        NESTED_OBJECT,
    ),
    *('[{"id":{}}]', '{"dateRange":{"start":1e400}}', '{"metadata":{"a":NaN}}', '{"n":1e400}'),
    *('{"dateRange":{"start":"9999-12-31T23:59:59-14:00"}}', '{"metadata":{"a":' + HUGE + "}}"),
    *('{"roles":["\\u0000"]}', '{"semanticRecall":{"topK":1e400}}', '{"workingMemory":[]}'),
)


def _operation(schema: Any, key: str) -> Any:
    method, path = key.split(" ", 1)
    return schema["paths"]["/api/memory/" + path.replace("<thread>", "{thread_id}")][method.lower()]


def parameters(schema: Any, key: str) -> Iterator[str]:
    """The query parameters that a route is documented to have."""
    for parameter in _operation(schema, key).get("parameters", ()):
        if parameter["in"] == "query":
            yield parameter["name"]


def body_paths(schema: Any, key: str) -> Iterator[tuple[str, ...]]:
    """The places in the body that a route is documented to take."""
    body = _operation(schema, key).get("requestBody")
    if body:
        yield from _paths(schema, body["content"]["application/json"]["schema"], ())


def _paths(schema: Any, part: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if "$ref" in part:
        part = schema["components"]["schemas"][part["$ref"].rsplit("/", 1)[1]]
    for name, inner in part.get("properties", {}).items():
        yield (*path, name)
        yield from _paths(schema, inner, (*path, name))


def with_value(body: Json, path: tuple[str, ...], raw: str) -> bytes:
    """The body as bytes, with this JSON text at this place."""
    changed = json.loads(json.dumps(body))
    place = changed
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = "@here@"
    return json.dumps(changed).replace('"@here@"', raw).encode()


def filled(value: Any) -> Any:
    """A query or a body with its names."""
    text = json.dumps(value).replace("<resource>", "r").replace("<thread>", "t")
    return json.loads(text.replace("<message>", "m"))


def assert_clear(answer: Answer, what: Any) -> None:
    """A JSON answer, which contains the reason of a refusal."""
    assert answer.body is not None and answer.status < 500, (what, answer.status)
    if answer.status != 200:
        assert answer.status in (400, 403, 404, 409) and answer.body["error"], (
            what,
            answer.raw[:200],
        )


@pytest.fixture
def thread(db: None, memory_settings: Any) -> StoredThread:
    """A thread `t` of a message `m` with something of everything."""
    memory_settings(OPTIONS={"workingMemory": {"enabled": True}, "observationalMemory": True})
    made = make_thread("r", "t")
    save([a_message(made, "m", text="lighthouse")])
    make_record(made)
    return made


@pytest.mark.parametrize("key", [key for key in KEYS if key.startswith("GET")])
def test_query__hostile_values_of_every_parameter(
    api: Api, thread: StoredThread, schema: Any, key: str
) -> None:
    path, route = filled(key).split(" ", 1)[1], ROUTES[key]
    for name in parameters(schema, key):
        for text in TEXTS:
            query = {"agentId": "a"} | filled(route.query or {}) | {name: text}
            assert_clear(api.through(None).get(path, query), (name, text[:40]))
        twice = {"agentId": "a"} | filled(route.query or {}) | {name: ("a", "b")}
        answer = api.through(None).get(path, twice)
        assert answer.status == 400 and fields_of(answer) == [name], (name, answer.raw)


@pytest.mark.parametrize("key", [key for key in KEYS if not key.startswith("GET")])
def test_body__hostile_values_in_every_place(
    api: Api, thread: StoredThread, schema: Any, key: str
) -> None:
    route, (method, path) = ROUTES[key], filled(key).split(" ", 1)
    query = filled(route.query or {})
    for place in body_paths(schema, key):
        for value in VALUES:
            raw = with_value(filled(route.body or {}), place, value)
            answer = api.send(method, path, raw, query=query)
            assert_clear(answer, (place, value[:40]))
            if answer.status == 404:  # a transfer or a deletion has gone through
                make_thread("r", "t")


MESSAGE_FIELDS = (
    "id",
    "role",
    "threadId",
    "resourceId",
    "createdAt",
    "content",
    "type",
    "metadata",
)
CONTENT_FIELDS = ("format", "parts", "content", "metadata", "annotations", "toolInvocations")
PARTS: tuple[Json, ...] = (
    {"type": "text", "text": "x"},
    {"type": "tool-invocation", "toolInvocation": {"toolName": "f", "toolCallId": "c"}},
    {"type": "data-signal", "data": {"type": "state"}},
    {"type": "file", "data": "x", "mimeType": "y"},
    {"type": "tool-call", "toolCallId": "c", "toolName": "f", "args": {}},
    {"type": "tool-result", "toolCallId": "c", "toolName": "f", "result": 1},
    {"type": "reasoning", "text": "x"},
)


def message_places() -> Iterator[tuple[Json, tuple[str, ...]]]:
    """Messages and the places in them that mean something."""
    plain: Json = {"role": "user", "threadId": "t", "resourceId": "r", "content": "x"}
    for name in MESSAGE_FIELDS:
        yield plain, (name,)
        yield plain | {"role": "signal"}, (name,)
    content = {"format": 2, "parts": [{"type": "text", "text": "x"}]}
    for name in CONTENT_FIELDS:
        yield plain | {"content": content}, ("content", name)
    for metadata in ("signal", "systemReminder", "dynamicAgentsMdReminder", "mastra"):
        yield plain | {"role": "signal", "content": content}, ("content", "metadata", metadata)


def part_bodies() -> Iterator[str]:
    """Messages with one part, in both list forms, with `@here@` in each of its places."""
    for part in PARTS:
        for name in part:
            changed = json.dumps(part | {name: "@here@"})
            inner = {key: "@here@" for key in part[name]} if isinstance(part[name], dict) else {}
            for text in {changed, json.dumps(part | {name: inner or "@here@"})}:
                yield f'{{"format":2,"parts":[{text}]}}'
                yield f"[{text},{text}]"


def test_save__hostile_values_in_every_place_of_a_message(api: Api, thread: StoredThread) -> None:
    for message, place in message_places():
        for value in VALUES:
            raw = b'{"messages":[' + with_value(message, place, value) + b"]}"
            assert_clear(api.send("POST", "save-messages", raw), (place, value[:40]))
    assert api.get("threads/t/messages", {"perPage": 1000}).status == 200


def test_save__hostile_values_in_every_place_of_a_part(api: Api, thread: StoredThread) -> None:
    for template in sorted(set(part_bodies())):
        for value in ODD:
            content = template.replace('"@here@"', value)
            raw = (
                '{"messages":[{"role":"user","threadId":"t","resourceId":"r","content":'
                f"{content}}}]}}"
            )
            assert_clear(api.send("POST", "save-messages", raw.encode()), (template, value[:40]))
    assert api.get("threads/t/messages", {"perPage": 5000}).status == 200
