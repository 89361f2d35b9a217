"""An update merged into what was known."""

from typing import Any

import pytest

from mastra_memory.working_memory.json_merge import merge_objects, parse_object

KNOWN = {"name": "Al", "prefs": {"a": 1, "b": 2}, "tags": ["x", "y"]}


@pytest.mark.parametrize(
    ("stored", "update", "result"),
    [
        (
            KNOWN,
            {"prefs": {"a": None}, "tags": ["z"]},
            {"name": "Al", "prefs": {"b": 2}, "tags": ["z"]},
        ),
        ({}, {"prefs": {"a": None}}, {"prefs": {}}),
        ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 1}, {"a": None, "gone": None}, {}),
        ({"a": [{"b": 1}]}, {"a": []}, {"a": []}),
        (KNOWN, {}, KNOWN),
        (KNOWN, "text", KNOWN),
        (KNOWN, [1], KNOWN),
        (KNOWN, None, KNOWN),
        (
            {"name": "Ann", "prefs": {"tone": "dry"}},
            {"prefs": {"lang": "de"}},
            {"name": "Ann", "prefs": {"tone": "dry", "lang": "de"}},
        ),
    ],
)
def test_merged__objects_merge_arrays_replace_null_deletes(
    stored: dict[str, Any], update: Any, result: dict[str, Any]
) -> None:
    before = repr(stored)
    assert merge_objects(stored, update) == result
    assert repr(stored) == before


@pytest.mark.parametrize("text", ["", "  ", "not json", "[1]", '"x"', "5", "null", '{"a": 1'])
def test_parsed__what_is_no_object_counts_as_empty(text: str) -> None:
    assert parse_object(text) == {}


def test_parsed__keeps_the_order_of_keys() -> None:
    assert list(parse_object('{"b": 1, "a": 2}')) == ["b", "a"]
