"""The tool that an agent calls."""

import json
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from mastra_memory.exceptions import AccessDenied
from mastra_memory.memory import Memory
from mastra_memory.models import Thread, WorkingMemoryRevision
from mastra_memory.options import DEFAULT_TEMPLATE
from mastra_memory.working_memory import MemoryTool
from tests.support.factories import make_thread

MARKDOWN: dict[str, Any] = {"workingMemory": {"enabled": True}}


class Prefs(BaseModel):
    tone: str
    lang: str


class Known(BaseModel):
    name: str
    prefs: Prefs
    tags: list[str] = []


JSON: dict[str, Any] = {"workingMemory": {"enabled": True, "schema": Known}}
PATCHED: dict[str, Any] = {"workingMemory": {"enabled": True, "version": "vnext"}}


def tool(options: dict[str, Any], thread_id: str = "t", resource_id: str = "r") -> MemoryTool:
    made = Memory(options=options).working_memory_tool(thread_id, resource_id=resource_id)
    assert made is not None
    return made


def known(options: dict[str, Any], thread_id: str = "t") -> str | None:
    return Memory(options=options).get_working_memory(thread_id)


@pytest.mark.django_db
def test_tool__markdown_is_given_whole() -> None:
    make_thread("r", "t")
    update = tool(MARKDOWN)
    assert update.name == "updateWorkingMemory"
    assert update.handler({"memory": "name: Ann"}) == {"success": True}
    assert update.handler({"memory": "name: Bea"}) == {"success": True}
    assert known(MARKDOWN) == "name: Bea"
    assert set(WorkingMemoryRevision.objects.values_list("source", flat=True)) == {"agent"}


@pytest.mark.django_db
@pytest.mark.parametrize("placeholder", [DEFAULT_TEMPLATE, DEFAULT_TEMPLATE.replace("\n", "\r\n")])
def test_tool__the_empty_template_is_refused(placeholder: str) -> None:
    make_thread("r", "t")
    tool(MARKDOWN).handler({"memory": "name: Ann"})
    answer = tool(MARKDOWN).handler({"memory": placeholder})
    assert answer["success"] is False and answer["message"]
    assert known(MARKDOWN) == "name: Ann"


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [{}, {"memory": None}, {"memory": 5}, {"memory": {"a": 1}}])
def test_tool__markdown_must_be_text(arguments: dict[str, Any]) -> None:
    make_thread("r", "t")
    assert tool(MARKDOWN).handler(arguments)["success"] is False
    assert known(MARKDOWN) is None


@pytest.mark.django_db
def test_tool__by_schema_only_what_changed_is_given() -> None:
    make_thread("r", "t")
    update = tool(JSON)
    assert update.handler({"memory": {"name": "Ann", "prefs": {"tone": "dry"}}}) == {
        "success": True
    }
    update.handler({"memory": {"prefs": {"lang": "de"}, "tags": ["x"]}})
    update.handler({"memory": '{"tags": ["y"]}'})
    assert json.loads(known(JSON) or "") == {
        "name": "Ann",
        "prefs": {"tone": "dry", "lang": "de"},
        "tags": ["y"],
    }


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"memory": {"name": None, "prefs": None, "city": "Rome"}},
         {"name": "Ann", "prefs": {"tone": "dry", "lang": "de"}, "city": "Rome"}),
        ({"memory": {"prefs": {"tone": None, "lang": "fr"}}},
         {"name": "Ann", "prefs": {"tone": "dry", "lang": "fr"}}),
        ({"memory": '{"name": null, "tags": ["x"]}'},
         {"name": "Ann", "prefs": {"tone": "dry", "lang": "de"}, "tags": ["x"]}),
        ({"memory": {"other": {"deep": None}}},
         {"name": "Ann", "prefs": {"tone": "dry", "lang": "de"}}),
        ({"memory": {}, "remove": ["name", "prefs.tone", "none", "prefs.tone.x"]},
         {"prefs": {"lang": "de"}}),
        ({"memory": None, "remove": "prefs"}, {"name": "Ann"}),
        ({"remove": ["prefs"], "memory": {"prefs": {"lang": "it"}, "name": None}},
         {"name": "Ann", "prefs": {"lang": "it"}}),
    ],
)  # fmt: skip
def test_tool__by_schema_null_changes_nothing(
    arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    make_thread("r", "t")
    update = tool(JSON)
    update.handler({"memory": {"name": "Ann", "prefs": {"tone": "dry", "lang": "de"}}})
    assert update.handler(arguments)["success"] is True
    assert json.loads(known(JSON) or "") == expected


@pytest.mark.django_db
def test_tool__by_schema_invalid_paths_are_answered() -> None:
    make_thread("r", "t")
    for remove in (5, [5], {"name": 1}):
        assert tool(JSON).handler({"memory": {"name": "Ann"}, "remove": remove}) == {
            "success": False,
            "message": "remove must be a list of paths",
        }
    assert known(JSON) is None


@pytest.mark.django_db
def test_tool__by_schema_what_does_not_fit_is_answered_not_raised() -> None:
    make_thread("r", "t")
    answer = tool(JSON).handler({"memory": {"prefs": {"lang": 5}}})
    assert answer["success"] is False and "workingMemory.prefs.lang" in answer["message"]
    assert known(JSON) is None


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [{}, {"memory": None}, {"memory": {"name": None}}])
def test_tool__by_schema_nothing_is_unchanged(arguments: dict[str, Any]) -> None:
    make_thread("r", "t")
    assert tool(JSON).handler(arguments) == {"success": True, "message": "memory is unchanged"}


@pytest.mark.django_db
def test_tool__parameter_schema_accepts_what_the_handler_does() -> None:
    for options in (MARKDOWN, JSON, PATCHED):
        jsonschema.Draft202012Validator.check_schema(tool(options).parameters)
    validator = jsonschema.Draft202012Validator(tool(JSON).parameters)
    for memory in ({}, {"prefs": {"lang": "de"}}, {"name": None}, {"prefs": {"tone": None}}):
        validator.validate({"memory": memory})
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"memory": {"prefs": {"lang": 5}}})


@pytest.mark.django_db
@pytest.mark.parametrize(
    "more",
    [
        {"workingMemory": {"enabled": False}},
        {"workingMemory": {"agentManaged": False}},
        {"readOnly": True},
    ],
)
def test_tool__is_none_where_the_agent_may_not_write(more: dict[str, Any]) -> None:
    assert Memory(options=MARKDOWN).working_memory_tool("t", options=more) is None


@pytest.mark.django_db
def test_tool__makes_a_missing_thread_and_refuses_a_foreign_one() -> None:
    assert tool(MARKDOWN, "new", "r").handler({"memory": "x"}) == {"success": True}
    assert Thread.objects.get(pk="new").resource_id == "r"
    make_thread("someone", "theirs")
    foreign = tool(MARKDOWN, "theirs", "r")
    with pytest.raises(AccessDenied):
        foreign.handler({"memory": "x"})


@pytest.mark.django_db
def test_tool__entries_are_added_and_replaced() -> None:
    make_thread("r", "t")
    update = tool(PATCHED).handler
    assert update({"newMemory": "- likes tea"}) == {"success": True}
    assert update({"newMemory": "- lives in Rome", "searchString": "tea"}) == {"success": True}
    assert known(PATCHED) == "- likes tea\n- lives in Rome"
    replaced = {"newMemory": "coffee", "searchString": "tea"}
    update({**replaced, "updateReason": "clarify-existing-memory"})
    assert known(PATCHED) == "- likes coffee\n- lives in Rome"
    missing = {"newMemory": "- plays chess", "searchString": "not there"}
    update({**missing, "updateReason": "replace-irrelevant-memory"})
    assert known(PATCHED) == "- likes coffee\n- lives in Rome\n- plays chess"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"newMemory": "  "},
        {"newMemory": "likes tea"},
        {"newMemory": DEFAULT_TEMPLATE},
        {"newMemory": "x", "updateReason": "clarify-existing-memory"},
        {"newMemory": "x", "updateReason": "replace-irrelevant-memory", "searchString": ""},
    ],
)
def test_tool__empty_patches_are_refused(arguments: dict[str, Any]) -> None:
    make_thread("r", "t")
    tool(PATCHED).handler({"newMemory": "- likes tea"})
    answer = tool(PATCHED).handler(arguments)
    assert answer["success"] is False and answer["reason"]
    assert known(PATCHED) == "- likes tea"
