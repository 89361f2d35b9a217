"""Attacks by single requests: large bodies, schemas, filters and searches without bounds."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tests.hostile.attack import HANDLED, LIMIT, SHOWN, Attack, Send, filled, message_of
from tests.hostile.target import Reply, Target

SHAPES: dict[str, Callable[[], bytes]] = {
    "empty objects": lambda: filled(b"[", b"{}", b"]"),
    "whole numbers": lambda: filled(b"[", b"1", b"]"),
    "texts": lambda: filled(b"[", b'""', b"]"),
    "lists": lambda: filled(b"[", b"[]", b"]"),
    "keys": lambda: b"{" + b",".join(b'"%d":1' % n for n in range(1_600_000)) + b"}",
    "nested lists": lambda: b"[" * (LIMIT // 2 - 100) + b"]" * (LIMIT // 2 - 100),
    "nested objects": lambda: b'{"a":' * 3_000_000 + b"1" + b"}" * 3_000_000,
    "one text": lambda: b'"' + b"x" * (LIMIT - 1_000) + b'"',
    "escapes": lambda: b'"' + b"\\u0000" * 3_000_000 + b'"',
    "a long number": lambda: b"1" * (LIMIT - 1_000),
}
PLACES = {
    "the body": ("POST", "threads", b"%b"),
    "metadata": ("POST", "threads", b'{"resourceId":"r","threadId":"shape","metadata":{"k":%b}}'),
    "messages": ("POST", "save-messages", b'{"messages":%b}'),
    "newMessages": ("POST", "threads/shape/context", b'{"resourceId":"r","newMessages":%b}'),
    "messageIds": ("POST", "messages/delete", b'{"messageIds":%b}'),
    "workingMemory": ("POST", "threads/shape/working-memory", b'{"workingMemory":%b}'),
}


# `prepare` builds the body before the time is measured. One body is cached, to save memory.
@lru_cache(maxsize=1)
def large_body(place: str, shape: str) -> bytes:
    return PLACES[place][2].replace(b"%b", SHAPES[shape]())


def large(place: str, shape: str) -> Attack:
    """An attack by a body of 20 MB."""
    method, path, _ = PLACES[place]
    return Attack(
        f"20 MB of {shape} as {place}",
        lambda target: target.api(method, path, large_body(place, shape)),
        HANDLED,
        5,
        400,
        prepare=lambda target: large_body(place, shape),
        long=place not in ("the body", "newMessages"),
    )


BODIES = [large(place, shape) for place in PLACES for shape in SHAPES]


def with_schema(schema: Any, value: str = '{"a": 1}') -> Send:
    config = {"workingMemory": {"enabled": True, "schema": schema}}
    body = {"workingMemory": value, "memoryConfig": config}

    def send(target: Target) -> Reply:
        return target.api("POST", "threads/schemas/working-memory", body)

    return send


BIG = json.dumps({str(n): n for n in range(800)})
SCHEMAS = {
    "400 levels, as text": ('{"properties":{"a":' * 400 + "{}" + "}}" * 400, "{}"),
    "400 levels": (json.loads('{"not":' * 200 + "{}" + "}" * 200), "{}"),
    "20,000 properties": (
        {"properties": {f"p{n}": {"type": "string"} for n in range(20_000)}},
        "{}",
    ),
    "uniqueItems over 800 objects": (
        {"properties": {"a": {"uniqueItems": True}}},
        json.dumps({"a": [{str(n): {"x": n}} for n in range(800)]}),
    ),
    "300 references to a large const": (
        {
            "$defs": {"c": {"const": "x" * 500_000}},
            "properties": {f"p{n}": {"$ref": "#/$defs/c"} for n in range(300)},
        },
        json.dumps({f"p{n}": "x" * 1_000 for n in range(300)}),
    ),
    "a reference to itself": ({"$ref": "#"}, "{}"),
    "alternatives of alternatives": (
        {
            "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8} for n in range(12)}
            | {"d12": False},
            "$ref": "#/$defs/d0",
        },
        "{}",
    ),
}
REQUEST_SCHEMAS = [
    Attack(
        f"schema with {name}",
        with_schema(schema, value),
        frozenset({400}),  # only the server's settings may contain a schema
        1,
        prepare=lambda target: target.store("schemas", "hello"),
    )
    for name, (schema, value) in SCHEMAS.items()
]


def search(pattern: str) -> Send:
    config = {"semanticRecall": {"filter": {"note": {"$regex": pattern}}}}
    words = {
        "searchQuery": "hello", "resourceId": "r", "searchType": "text",
        "memoryConfig": json.dumps(config),
    }  # fmt: skip
    return lambda target: target.api("GET", "search", **words)


def store_long_metadata(target: Target) -> None:
    metadata = {"note": "a" * 200_000}
    body = {"resourceId": "r", "threadId": "long metadata", "metadata": metadata}
    target.api("POST", "threads", body)
    target.store("long metadata", "hello")


def store_5000(target: Target) -> None:
    for start in range(0, 5_000, 1_000):
        target.store("many", *[message_of(f"lighthouse {start + n}") for n in range(1_000)])


def search_everything(target: Target) -> Reply:
    recall = {"topK": 2**40, "messageRange": 2**40, "scope": "resource"}
    config = {"semanticRecall": recall, "lastMessages": 2**40}
    words = {"searchQuery": "lighthouse", "resourceId": "r", "limit": 2**40}
    return target.api("GET", "search", **words, memoryConfig=json.dumps(config))


DATABASE = [
    *[
        Attack(f"$regex {name}", search(pattern), HANDLED, 6, prepare=store_long_metadata)
        for name, pattern in {
            "with a look-ahead": "(?=a*b)a*c",
            "with a back-reference": r"(a*)\1b",
            "that is ambiguous": "(a|a)*(a|a)*b",
            "with nested repetition": "((a{1,50}){1,50}){1,50}b",
        }.items()
    ],
    Attack("search without bounds", search_everything, HANDLED, 5, 200, prepare=store_5000),
    Attack(
        "context without bounds",
        lambda target: target.api(
            "POST", "threads/many/context",
            {"resourceId": "r", "newMessages": ["lighthouse"], "memoryConfig": {
                "lastMessages": 2**40,
                "semanticRecall": {"topK": 2**40, "messageRange": 2**40}}},
        ),
        HANDLED, 8, 300, prepare=store_5000, long=True,
    ),
]  # fmt: skip


def store_large_messages(target: Target) -> None:
    for number in range(15):
        target.store("large", message_of(f"{number}" + "x" * (LIMIT - 2_000)))


PAGES = [
    Attack(
        "a page of 15 messages of 20 MB",
        lambda target: target.api("GET", "threads/large/messages", perPage=100),
        SHOWN,
        10,
        400,
        prepare=store_large_messages,
        long=True,
    ),
]
