"""Options of agents: defaults, merging and validation."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mastra_memory.exceptions import InvalidInput
from mastra_memory.options import (
    DEFAULT_TEMPLATE,
    MemoryOptions,
    TimeOptions,
    camel_keys,
    merge_options,
    snake_keys,
)

ON = {"enabled": True}
FEATURES = ("semanticRecall", "observationalMemory", "generateTitle")


def parse(*layers: dict[str, Any]) -> MemoryOptions:
    """Return the options of these layers."""
    return MemoryOptions.parse(*layers)


def test_parse__defaults() -> None:
    options = parse()
    assert options.last_messages == 10 and not options.last_messages_is_set
    assert options.message_history is None and options.semantic_recall is None
    assert options.observational_memory is None and options.generate_title is None
    assert options.read_only is False and options.is_history_disabled is False
    assert options.working_memory.enabled is False
    assert options.working_memory.scope == "resource"
    assert options.working_memory.template == DEFAULT_TEMPLATE


@pytest.mark.parametrize("value", [True, {}, ON])
def test_parse__true_or_an_object_turns_a_feature_on(value: Any) -> None:
    options = parse({"semanticRecall": value, "observationalMemory": value, "generateTitle": value})
    recall, observation = options.semantic_recall, options.observational_memory
    assert recall is not None and observation is not None and options.generate_title is not None
    assert (recall.top_k, recall.before, recall.after, recall.scope) == (4, 1, 1, "resource")
    assert (observation.scope, observation.observation.message_tokens) == ("thread", 30_000)
    assert options.generate_title.min_messages == 1


@pytest.mark.parametrize("value", [False, None, {"enabled": False}])
def test_parse__false_turns_a_feature_off(value: Any) -> None:
    options = parse({"semanticRecall": value, "observationalMemory": value, "generateTitle": value})
    assert (options.semantic_recall, options.observational_memory, options.generate_title) == (
        None,
        None,
        None,
    )


def test_parse__accepts_names_in_both_spellings() -> None:
    camel = {"lastMessages": 3, "workingMemory": {"agentManaged": False}}
    snake = {"last_messages": 3, "working_memory": {"agent_managed": False}}
    assert parse(camel) == parse(snake)
    assert snake_keys(camel) == snake and camel_keys(snake) == camel


def test_snake_keys__leaves_schemas_and_filters_alone() -> None:
    opaque = {"properties": {"firstName": {"minLength": 1}}}
    value = {"workingMemory": {"schema": opaque}, "semanticRecall": {"filter": {"aB": 1}}}
    converted = snake_keys(value)
    assert converted["working_memory"]["schema"] == opaque
    assert converted["semantic_recall"]["filter"] == {"aB": 1}


def test_merge_options__merges_objects_and_replaces_the_rest() -> None:
    base = {"a": {"b": 1, "c": [1]}, "schema": {"x": 1}, "d": 1}
    assert merge_options(base, {"a": {"c": [2]}, "schema": {"y": 2}, "d": None}) == {
        "a": {"b": 1, "c": [2]},
        "schema": {"y": 2},
        "d": None,
    }
    assert base["a"] == {"b": 1, "c": [1]}


def test_merged__options_of_a_call_override_the_agent() -> None:
    agent = parse({"workingMemory": ON | {"template": "# A"}}, {"lastMessages": 20})
    merged_options = agent.merged({"workingMemory": {"scope": "thread"}, "lastMessages": False})
    assert merged_options.working_memory.enabled and merged_options.working_memory.template == "# A"
    assert merged_options.working_memory.scope == "thread" and merged_options.is_history_disabled
    assert agent.last_messages == 20 and agent.merged(None) is agent and agent.merged({}) is agent


@pytest.mark.parametrize(
    "value", [{"lastMessages": 0}, {"lastMessages": False}, {"messageHistory": {"maxTokens": 0}}]
)
def test_is_history_disabled__if_no_message_is_wanted(value: dict[str, Any]) -> None:
    assert parse(value).is_history_disabled


def test_parse__message_history_removes_a_quarter_by_default() -> None:
    history = parse({"messageHistory": {"maxTokens": 1000}}).message_history
    assert history is not None and history.at_max_remove_tokens == 250


@pytest.mark.parametrize(
    ("value", "sizes"), [(3, (3, 3)), (0, (0, 0)), ({"before": 2}, (2, 1)), ({"after": 0}, (1, 0))]
)
def test_parse__message_range(value: Any, sizes: tuple[int, int]) -> None:
    recall = parse({"semanticRecall": {"messageRange": value}}).semantic_recall
    assert recall is not None and (recall.before, recall.after) == sizes


@pytest.mark.parametrize(("scope", "expected"), [("thread", "thread"), ("x", "resource")])
def test_parse__recall_scope_is_resource_unless_thread_is_set(scope: str, expected: str) -> None:
    recall = parse({"semanticRecall": {"scope": scope}}).semantic_recall
    assert recall is not None and recall.scope == expected


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"readOnly": 1}, "read_only"),
        ({"workingMemory": {"agentManaged": 0}}, "working_memory.agent_managed"),
        ({"lastMessages": -1}, "last_messages"),
        ({"lastMessages": 1.5}, "last_messages"),
        ({"lastMessages": True}, "last_messages"),
        ({"lastMessages": "10"}, "last_messages"),
        ({"messageHistory": {"maxTokens": -1}}, "message_history.max_tokens"),
        ({"messageHistory": {"maxTokens": "x"}}, "message_history.max_tokens"),
        (
            {"messageHistory": {"maxTokens": 5, "atMaxRemoveTokens": 6}},
            "message_history.at_max_remove_tokens",
        ),
        ({"maxContextTokens": -1}, "max_context_tokens"),
        ({"maxContextTokens": "many"}, "max_context_tokens"),
        ({"readOnly": "yes"}, "read_only"),
        ({"semanticRecall": "yes"}, "semantic_recall"),
        ({"semanticRecall": {"topK": -1}}, "semantic_recall.top_k"),
        ({"semanticRecall": {"threshold": "x"}}, "semantic_recall.threshold"),
        ({"semanticRecall": {"threshold": float("inf")}}, "semantic_recall.threshold"),
        ({"semanticRecall": {"mode": "magic"}}, "semantic_recall.mode"),
        (
            {"semanticRecall": {"messageRange": {"before": -1}}},
            "semantic_recall.message_range.before",
        ),
        ({"workingMemory": ON | {"scope": "planet"}}, "working_memory.scope"),
        ({"workingMemory": ON | {"template": 5}}, "working_memory.template"),
        ({"workingMemory": ON | {"schema": [1]}}, "working_memory.schema"),
        ({"workingMemory": {"use": "tool-call"}}, "working_memory.use"),
        ({"observationalMemory": {"scope": "planet"}}, "observational_memory.scope"),
        ({"observationalMemory": {"model": 5}}, "observational_memory.model"),
        ({"generateTitle": {"minMessages": 0}}, "generate_title.min_messages"),
        ({"generateTitle": {"instructions": 5}}, "generate_title.instructions"),
        ({"threads": {"generateTitle": True}}, "threads.generate_title"),
        ({"processors": []}, "processors"),
    ],
)
def test_parse__refuses_and_names_invalid_options(value: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(value)
    assert [issue.field for issue in refused.value.issues] == [field]


def test_parse__reports_all_errors_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse({"lastMessages": -1, "readOnly": 5})
    assert [issue.field for issue in refused.value.issues] == ["last_messages", "read_only"]


@pytest.mark.parametrize(
    ("value", "zone"),
    [
        (True, None),
        ({}, None),
        ({"timeZone": "Asia/Tokyo"}, "Asia/Tokyo"),
        ({"time_zone": "UTC"}, "UTC"),
    ],
)
def test_parse__time_is_on_by_default(value: Any, zone: str | None) -> None:
    for options in (parse({"semanticRecall": {"time": value}}), parse({"semantic_recall": True})):
        assert options.semantic_recall is not None
        assert options.semantic_recall.time is not None
    recall = parse({"semantic_recall": {"time": value}}).semantic_recall
    assert recall is not None and recall.time is not None
    assert recall.time.zone == (None if zone is None else ZoneInfo(zone))


def test_parse__time_can_be_turned_off_and_on_again() -> None:
    off = parse({"semanticRecall": {"time": False}})
    assert off.semantic_recall is not None and off.semantic_recall.time is None
    on = off.merged({"semantic_recall": {"time": {"now": "2024-05-01T00:00:00Z"}}}).semantic_recall
    assert on is not None and on.time == TimeOptions(now=datetime(2024, 5, 1, tzinfo=UTC))
