"""What a schema starts with, and what does not fit it."""

import json
import logging
from typing import Any

import pytest
from pydantic import BaseModel, Field

from mastra_memory.exceptions import InvalidInput
from mastra_memory.options import MemoryOptions, parse_request_options
from mastra_memory.working_memory.schema import build_empty_value, validate_content
from tests.support.waiting import fail_after

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "level": {"type": "integer", "default": 3},
        "ratio": {"type": "number"},
        "active": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "prefs": {
            "type": "object",
            "properties": {
                "tone": {"type": "string", "default": "dry"},
                "lang": {"type": "string"},
            },
            "required": ["lang"],
        },
        "boss": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "kind": {"const": "user"},
    },
    "required": ["name"],
}
EMPTY = {
    "name": "",
    "age": 0,
    "level": 3,
    "ratio": 0,
    "active": False,
    "tags": [],
    "prefs": {"tone": "dry", "lang": ""},
    "boss": None,
    "kind": "user",
}


class Pet(BaseModel):
    name: str
    age: int = 1


class Owner(BaseModel):
    city: str
    pet: Pet
    pets: list[Pet] = Field(default_factory=list)
    note: str | None = None


@pytest.mark.parametrize("given", [SCHEMA, json.dumps(SCHEMA)])
def test_empty_value__has_nested_keys_and_defaults(given: Any) -> None:
    assert build_empty_value(given) == EMPTY


def test_empty_value__follows_references() -> None:
    empty = build_empty_value(Owner.model_json_schema())
    assert empty == {"city": "", "pet": {"name": "", "age": 1}, "pets": [], "note": None}


@pytest.mark.parametrize(
    "broken",
    ["{not json", 5, None, [], {"properties": 5}, {"$ref": "#/nowhere"}, {"anyOf": []}],
)
def test_empty_value__of_a_broken_schema_is_an_empty_object(broken: Any) -> None:
    assert build_empty_value(broken) == {}


def test_empty_value__a_broken_schema_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        build_empty_value("{not json")
    assert "schema" in caplog.text


def test_empty_value__ends_for_a_schema_that_holds_itself() -> None:
    assert build_empty_value({"type": "object", "properties": {"me": {"$ref": "#"}}}) is not None
    assert build_empty_value({"$ref": "#"}) == {}


def test_options__a_schema_may_be_text_or_a_pydantic_model() -> None:
    for given in (Owner, json.dumps(Owner.model_json_schema())):
        options = MemoryOptions.parse({"workingMemory": {"enabled": True, "schema": given}})
        assert options.working_memory.schema == Owner.model_json_schema()
    broken = MemoryOptions.parse({"workingMemory": {"enabled": True, "schema": "{"}})
    assert broken.working_memory.schema == {}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"name": 5}, "workingMemory.name"),
        ({"name": "A", "age": "x"}, "workingMemory.age"),
        ({"name": "A", "age": -1}, "workingMemory.age"),
        ({"name": "A", "tags": ["x", 5]}, "workingMemory.tags.1"),
        ({"name": "A", "prefs": {"lang": 1}}, "workingMemory.prefs.lang"),
        ({"name": "A", "prefs": {}}, "workingMemory.prefs"),
        ({"age": 5}, "workingMemory"),
        ([], "workingMemory"),
        ("text", "workingMemory"),
    ],
)
def test_checked__names_the_path_of_what_does_not_fit(value: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_content(SCHEMA, json.dumps(value))
    assert [issue.field for issue in caught.value.issues] == [path]


def test_checked__names_every_fault() -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_content(SCHEMA, json.dumps({"name": 5, "age": "x"}))
    fields = [issue.field for issue in caught.value.issues]
    assert sorted(fields) == ["workingMemory.age", "workingMemory.name"]


@pytest.mark.parametrize("text", ["", "not json", "{", "NaN"])
def test_checked__text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not valid JSON"):
        validate_content(SCHEMA, text)


@pytest.mark.parametrize(
    "update",
    [{}, {"age": 5}, {"name": None}, {"prefs": {"tone": None}}, {"prefs": {}}, {"prefs": None}],
)
def test_checked__of_an_update_nothing_is_required_and_null_fits(update: Any) -> None:
    assert validate_content(SCHEMA, json.dumps(update), partial=True) == update


@pytest.mark.parametrize("update", [{"age": "x"}, {"tags": "x"}, {"prefs": {"lang": 1}}, [], "x"])
def test_checked__an_update_of_the_wrong_type_is_refused(update: Any) -> None:
    with pytest.raises(InvalidInput):
        validate_content(SCHEMA, json.dumps(update), partial=True)


def test_checked__an_update_by_references() -> None:
    schema = Owner.model_json_schema()
    assert validate_content(schema, '{"pet": {"age": 3}}', partial=True) == {"pet": {"age": 3}}
    with pytest.raises(InvalidInput) as caught:
        validate_content(schema, '{"pet": {"age": "x"}}', partial=True)
    assert caught.value.issues[0].field == "workingMemory.pet.age"


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "nonsense"},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"properties": 5},
        {"$schema": 17, "$ref": "#/nowhere"},
        {"$ref": "#/default", "default": {"properties": {"a": {"multipleOf": 0}}}},
        {"$ref": "#/default", "default": {"properties": {"a": {"minimum": "x"}}}},
        {"$ref": "#/default", "default": {"properties": {"a": {"type": 5}}}},
        {"$ref": "#/default", "default": {"properties": [1]}},
    ],
)
def test_checked__a_broken_schema_asks_for_nothing_but_json(
    broken: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert validate_content(broken, '{"a": 1}') == {"a": 1}
    assert "broken" in caplog.text


def test_checked__a_schema_cannot_make_us_fetch_anything(caplog: pytest.LogCaptureFixture) -> None:
    from tests.support.openai_server import openai_server

    with openai_server() as server:
        assert validate_content({"$ref": f"{server.base_url}/x.json"}, '{"a": 1}') == {"a": 1}
        assert not server.keys and not server.requests
    assert "broken" in caplog.text


def test_outside_options__only_the_agents_schema_is_accepted() -> None:
    agent = MemoryOptions.parse({"workingMemory": {"enabled": True, "schema": SCHEMA}})
    for same in (SCHEMA, json.dumps(SCHEMA)):
        given = {"lastMessages": 5, "workingMemory": {"scope": "thread", "schema": same}}
        kept = parse_request_options(given, agent)
        assert kept == {"last_messages": 5, "working_memory": {"scope": "thread"}}
        assert agent.merged(kept).working_memory.schema == SCHEMA
    others: list[Any] = [{}, None, 5, [], "{", '{"type": "object"}', "[" * 400 + "]" * 400]
    for other in others:
        with pytest.raises(InvalidInput) as caught:
            parse_request_options({"workingMemory": {"schema": other}}, agent)
        (issue,) = caught.value.issues
        assert issue.field == "memoryConfig.workingMemory.schema"
        assert "settings" in issue.message
    assert parse_request_options(None, agent) is None


DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def doubling(inner: dict[str, Any], levels: int = 40) -> dict[str, Any]:
    """A schema that asks the same of a value 2 ** levels times."""
    last = {f"d{levels}": {"type": "object"}}
    twice = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2, **inner} for n in range(levels)
    }
    return {"$defs": twice | last, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling({}), {}),
        (doubling(DRAFT_7), {}),
        (doubling({}) | DRAFT_7 | {"allOf": [{"$ref": "#/$defs/d0"}]}, {}),
        ({"items": {"enum": list(range(5_000))}}, [4_999] * 5_000),
    ],
)
def test_checked__what_would_take_hours_is_refused(schema: Any, value: Any) -> None:
    with pytest.raises(InvalidInput, match="takes too long to validate"):
        validate_content(schema, json.dumps(value))


@pytest.mark.parametrize(
    "items",
    [
        [str(number) for number in range(49_000)],
        [{"n": number, "x": "y"} for number in range(16_000)],
        [1, "1", True, [1], {"1": 1}, None, 0, False, 1.5],
    ],
)
def test_checked__many_unique_items_are_no_trouble(items: list[Any]) -> None:
    schema = {"uniqueItems": True}
    with fail_after():
        assert validate_content(schema, json.dumps(items)) == items
    with pytest.raises(InvalidInput, match="uniqueItems"):
        validate_content(schema, json.dumps([*items, items[-1]]))


def test_checked__equal_numbers_and_objects_are_not_unique() -> None:
    for items in ([1, 1.0], [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]):
        with pytest.raises(InvalidInput, match="uniqueItems"):
            validate_content({"uniqueItems": True}, json.dumps(items))


def test_checked__a_value_with_too_many_parts_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 100000 names and values"):
        validate_content({}, json.dumps([0] * 100_001))


def test_empty_value__a_schema_that_multiplies_is_broken(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {key: {"$ref": "#"} for key in "abcdef"}}
    assert build_empty_value(schema) == {}
    assert "broken (LookupError)" in caplog.text
