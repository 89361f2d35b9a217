"""Options of observational memory: defaults, spellings and one error for each rule."""

from typing import Any

import pytest
from pydantic import BaseModel

from mastra_memory.exceptions import InvalidInput
from mastra_memory.options import (
    Extractor,
    MemoryOptions,
    ModelTiers,
    ObservationalMemoryOptions,
    parse_request_options,
)

OBSERVATION, REFLECTION = "observational_memory.observation", "observational_memory.reflection"


class Mood(BaseModel):
    """How the user feels."""

    mood: str


def shout(value: str, **about: Any) -> str:
    """Return the value in capitals."""
    return value.upper()


def parse(**options: Any) -> ObservationalMemoryOptions:
    parsed = MemoryOptions.parse({"observationalMemory": options}).observational_memory
    assert parsed is not None
    return parsed


def test_parse__defaults_of_mastra() -> None:
    options = parse()
    assert options == ObservationalMemoryOptions()
    observation, reflection = options.observation, options.reflection
    assert (options.scope, options.asynchronous, options.share_token_budget) == (
        "thread",
        True,
        False,
    )
    assert (options.retrieval, options.activate_after_idle) == (None, None)
    assert not options.activate_on_provider_change and not options.temporal_markers
    assert (observation.message_tokens, observation.buffer_tokens) == (30_000, 0.2)
    assert (observation.buffer_activation, observation.block_after) == (0.8, 1.2)
    assert (observation.max_tokens_per_batch, observation.previous_observer_tokens) == (
        10_000,
        2_000,
    )
    assert observation.observe_attachments == ("image/*", "application/pdf")
    assert not observation.thread_title and not observation.buffer_on_idle
    assert not observation.manage_working_memory
    assert observation.continuation_hints.current_task
    assert (reflection.observation_tokens, reflection.buffer_activation) == (40_000, 0.5)
    assert reflection.block_after == 1.2 and observation.extract == reflection.extract == ()


def test_parse__both_spellings_are_equal() -> None:
    camel = {
        "observationalMemory": {
            "shareTokenBudget": True,
            "activateAfterIdle": "5m",
            "observation": {
                "bufferTokens": False,
                "messageTokens": 10,
                "previousObserverTokens": 5,
                "continuationHints": {"currentTask": False},
            },
            "reflection": {"observationTokens": 9},
        }
    }
    snake = {
        "observational_memory": {
            "share_token_budget": True,
            "activate_after_idle": 300_000,
            "observation": {
                "buffer_tokens": False,
                "message_tokens": 10,
                "previous_observer_tokens": 5,
                "continuation_hints": {"current_task": False},
            },
            "reflection": {"observation_tokens": 9},
        }
    }
    options = MemoryOptions.parse(camel).observational_memory
    assert options == MemoryOptions.parse(snake).observational_memory
    assert options is not None and options.activate_after_idle == 300_000
    hints = options.observation.continuation_hints
    assert (hints.current_task, hints.suggested_response) == (False, True)


@pytest.mark.parametrize(
    ("options", "models"),
    [
        ({}, ("", "")),
        ({"model": "default"}, ("", "")),
        ({"model": "a/b"}, ("a/b", "a/b")),
        ({"observation": {"model": "a/b"}}, ("a/b", "a/b")),
        ({"reflection": {"model": "a/b"}}, ("a/b", "a/b")),
        ({"observation": {"model": "a/b"}, "reflection": {"model": "c/d"}}, ("a/b", "c/d")),
    ],
)
def test_parse__models(options: dict[str, Any], models: tuple[str, str]) -> None:
    parsed = parse(**options)
    assert (parsed.observation.model, parsed.reflection.model) == models


@pytest.mark.parametrize(
    "table",
    [{"upTo": {40_000: "a/large", "10000": "a/small"}}, {10_000: "a/small", 40_000: "a/large"}],
)
def test_parse__models_by_input_tokens(table: dict[Any, Any]) -> None:
    tiers = parse(model=table).observation.model
    assert tiers == ModelTiers(limits=((10_000, "a/small"), (40_000, "a/large")))
    assert isinstance(tiers, ModelTiers)
    assert [tiers.select_model(n) for n in (0, 10_000, 10_001, 40_000)] == [
        "a/small",
        "a/small",
        "a/large",
        "a/large",
    ]
    with pytest.raises(InvalidInput, match="No model is configured for 40001 input tokens"):
        tiers.select_model(40_001)


@pytest.mark.parametrize(
    ("options", "asynchronous"),
    [
        ({}, True),
        ({"observation": {"bufferTokens": False}}, False),
        ({"scope": "resource"}, False),
        ({"scope": "resource", "observation": {"bufferTokens": False}}, False),
    ],
)
def test_parse__when_buffering_is_on(options: dict[str, Any], asynchronous: bool) -> None:
    assert parse(**options).asynchronous is asynchronous


@pytest.mark.parametrize(
    ("value", "patterns"),
    [
        (True, ("*/*",)),
        (False, ()),
        ("auto", ("image/*", "application/pdf")),
        (["image/png"], ("image/png",)),
    ],
)
def test_parse__attachments(value: Any, patterns: tuple[str, ...]) -> None:
    assert parse(observation={"observeAttachments": value}).observation.observe_attachments == (
        patterns
    )


def test_parse__retrieval() -> None:
    on, off = parse(retrieval=True).retrieval, parse(retrieval=False).retrieval
    assert on is not None and (on.scope, on.vector) == ("resource", False) and off is None
    own = parse(retrieval={"scope": "thread", "vector": True, "instructions": "x"}).retrieval
    assert own is not None and (own.scope, own.vector, own.instructions) == ("thread", True, "x")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"scope": "planet"}, "observational_memory.scope"),
        ({"model": 5}, "observational_memory.model"),
        ({"model": {"upTo": {}}}, "observational_memory.model"),
        ({"model": {"upTo": {"many": "a/b"}}}, "observational_memory.model"),
        ({"model": {"upTo": {"10": 5}}}, "observational_memory.model"),
        ({"model": "a/b", "observation": {"model": "c/d"}}, "observational_memory.model"),
        ({"model": "a/b", "reflection": {"model": "c/d"}}, "observational_memory.model"),
        ({"observation": {"messageTokens": 0}}, f"{OBSERVATION}.message_tokens"),
        ({"observation": {"bufferTokens": 0}}, f"{OBSERVATION}.buffer_tokens"),
        ({"observation": {"bufferTokens": -1}}, f"{OBSERVATION}.buffer_tokens"),
        ({"observation": {"bufferTokens": True}}, f"{OBSERVATION}.buffer_tokens"),
        ({"observation": {"bufferTokens": 30_000}}, f"{OBSERVATION}.buffer_tokens"),
        ({"observation": {"bufferActivation": 0}}, f"{OBSERVATION}.buffer_activation"),
        ({"observation": {"bufferActivation": 1.5}}, f"{OBSERVATION}.buffer_activation"),
        ({"observation": {"bufferActivation": 999}}, f"{OBSERVATION}.buffer_activation"),
        ({"observation": {"bufferActivation": 30_000}}, f"{OBSERVATION}.buffer_activation"),
        ({"observation": {"blockAfter": 0.5}}, f"{OBSERVATION}.block_after"),
        ({"observation": {"blockAfter": 20_000}}, f"{OBSERVATION}.block_after"),
        ({"observation": {"blockAfter": float("inf")}}, f"{OBSERVATION}.block_after"),
        (
            {"observation": {"blockAfter": 2, "bufferTokens": False}},
            f"{OBSERVATION}.block_after",
        ),
        ({"scope": "resource", "observation": {"blockAfter": 2}}, f"{OBSERVATION}.block_after"),
        ({"observation": {"maxTokensPerBatch": 0}}, f"{OBSERVATION}.max_tokens_per_batch"),
        (
            {"observation": {"previousObserverTokens": -1}},
            f"{OBSERVATION}.previous_observer_tokens",
        ),
        (
            {"observation": {"previousObserverTokens": float("inf")}},
            f"{OBSERVATION}.previous_observer_tokens",
        ),
        ({"observation": {"observeAttachments": "png"}}, f"{OBSERVATION}.observe_attachments"),
        ({"observation": {"threadTitle": "yes"}}, f"{OBSERVATION}.thread_title"),
        ({"observation": {"instruction": 5}}, f"{OBSERVATION}.instruction"),
        ({"observation": {"continuationHints": 1}}, f"{OBSERVATION}.continuation_hints"),
        ({"observation": {"modelSettings": []}}, f"{OBSERVATION}.model_settings"),
        (
            {"observation": {"modelSettings": {"temperature": "hot"}}},
            f"{OBSERVATION}.model_settings.temperature",
        ),
        (
            {"observation": {"modelSettings": {"maxOutputTokens": 0}}},
            f"{OBSERVATION}.model_settings.max_output_tokens",
        ),
        ({"observation": {"extract": {}}}, f"{OBSERVATION}.extract"),
        ({"observation": {"extract": ["no.such.path"]}}, f"{OBSERVATION}.extract.0"),
        ({"observation": {"extract": [5]}}, f"{OBSERVATION}.extract.0"),
        ({"observation": {"extract": [{"mode": "inline"}]}}, f"{OBSERVATION}.extract.0"),
        ({"observation": {"extract": [{"name": "a", "odd": 1}]}}, f"{OBSERVATION}.extract.0"),
        (
            {"observation": {"extract": [{"name": "a", "mode": "structured"}]}},
            f"{OBSERVATION}.extract.0",
        ),
        (
            {"observation": {"extract": [{"name": "a", "onExtracted": "builtins.len.x"}]}},
            f"{OBSERVATION}.extract.0.on_extracted",
        ),
        (
            {"observation": {"extract": [{"name": "a"}, {"name": "A!"}]}},
            f"{OBSERVATION}.extract",
        ),
        ({"reflection": {"observationTokens": 0}}, f"{REFLECTION}.observation_tokens"),
        ({"reflection": {"bufferActivation": 0}}, f"{REFLECTION}.buffer_activation"),
        ({"reflection": {"bufferActivation": 1.1}}, f"{REFLECTION}.buffer_activation"),
        ({"reflection": {"blockAfter": 100}}, f"{REFLECTION}.block_after"),
        (
            {"reflection": {"blockAfter": 2}, "observation": {"bufferTokens": False}},
            f"{REFLECTION}.block_after",
        ),
        (
            {"scope": "resource", "observation": {"bufferTokens": 0.2}},
            f"{OBSERVATION}.buffer_tokens",
        ),
        (
            {"scope": "resource", "observation": {"bufferActivation": 0.8}},
            f"{OBSERVATION}.buffer_activation",
        ),
        (
            {"scope": "resource", "reflection": {"bufferActivation": 0.5}},
            f"{REFLECTION}.buffer_activation",
        ),
        ({"shareTokenBudget": True}, "observational_memory.share_token_budget"),
        ({"retrieval": "yes"}, "observational_memory.retrieval"),
        ({"retrieval": {"scope": "planet"}}, "observational_memory.retrieval.scope"),
        ({"activateAfterIdle": "5 weeks"}, "observational_memory.activate_after_idle"),
        ({"activateAfterIdle": -1}, "observational_memory.activate_after_idle"),
        ({"activateAfterIdle": True}, "observational_memory.activate_after_idle"),
        ({"hooks": {"onSave": len}}, "observational_memory.hooks"),
        ({"hooks": []}, "observational_memory.hooks"),
        ({"hooks": {"beforeObservation": 5}}, "observational_memory.hooks.before_observation"),
        (
            {"hooks": {"beforeObservation": "no.such.function"}},
            "observational_memory.hooks.before_observation",
        ),
    ],
)  # fmt: skip
def test_parse__one_error_for_each_rule(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(**options)
    assert [issue.field for issue in refused.value.issues] == [field]


@pytest.mark.parametrize("name", ["thread", "User", "current task", "42", "", "thread-title", "é"])
def test_parse__reserved_and_invalid_names_of_extractors(name: str) -> None:
    with pytest.raises(InvalidInput, match="needs another name"):
        parse(observation={"extract": [{"name": name}]})


@pytest.mark.parametrize(
    ("name", "slug"),
    [("User's Mood!", "users-mood"), ("a  b--c", "a-b-c"), ("Trip 2025", "trip-2025")],
)
def test_extractor__slug(name: str, slug: str) -> None:
    assert Extractor(name=name).slug == slug
    assert Extractor(name=name).key_path == ("extracted", slug)
    assert Extractor(name=name, metadata_key_path="a.b").key_path == ("a", "b")


def test_parse__extractors_from_models_objects_and_dotted_paths() -> None:
    path = f"{__name__}.Mood"
    entries = [
        {"name": "one", "schema": path, "onExtracted": f"{__name__}.shout"},
        {"name": "two", "schema": {"type": "object"}, "metadataKeyPath": "x.y"},
        {"name": "three", "instructions": "How?", "includePreviousExtraction": False},
        {"name": "four", "mode": "hook", "on_extracted": shout},
        Mood,
    ]
    one, two, three, four, mood = parse(observation={"extract": entries}).observation.extract
    assert (one.schema, one.mode, one.on_extracted) == (Mood, "structured", shout)
    assert (two.mode, two.key_path) == ("structured", ("x", "y"))
    assert (three.mode, three.include_previous_extraction) == ("inline", False)
    assert (four.mode, four.on_extracted) == ("hook", shout)
    assert (mood.name, mood.schema, mood.instructions) == ("Mood", Mood, "How the user feels.")
    [named] = parse(reflection={"extract": [path]}).reflection.extract
    assert named == mood


def test_parse__hooks_from_functions_and_dotted_paths() -> None:
    hooks = parse(hooks={"beforeReflection": f"{__name__}.shout", "after_reflection": shout}).hooks
    assert hooks.before_reflection is hooks.after_reflection is shout
    assert hooks.before_observation is None


@pytest.mark.parametrize(
    "options",
    [
        {"hooks": {"beforeObservation": "os.remove"}},
        {"observation": {"extract": [{"name": "a"}]}},
        {"reflection": {"extract": ["os.remove"]}},
    ],
)
def test_parse_request_options__code_may_not_come_from_a_request(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="can only be set in the settings of the server"):
        parse_request_options({"observationalMemory": options}, MemoryOptions())


def test_parse__managed_working_memory_takes_the_tool_from_the_agent() -> None:
    layers = {
        "workingMemory": {"enabled": True},
        "observationalMemory": {"observation": {"manageWorkingMemory": True}},
    }
    options = MemoryOptions.parse(layers)
    assert options.working_memory.enabled and not options.working_memory.agent_managed
