"""What start-up tells about the settings."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.checks import check_settings


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"OPTIONS": {"lastMessages": 20}},
        {"AGENTS": {"a": {"workingMemory": {"enabled": True}}, "none": None}},
    ],
)
def test_check_settings__says_nothing_when_all_is_well(
    memory_settings: Callable[..., None], chosen: Any
) -> None:
    memory_settings(**chosen)
    assert check_settings() == []


def test_check_settings__unknown_names(memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTION={}, OPTIONS={}, Z=1)
    (found,) = check_settings()
    assert found.id == "mastra_memory.E001" and "OPTION, Z" in found.msg


def test_check_settings__options_that_cannot_be_read(memory_settings: Callable[..., None]) -> None:
    memory_settings(
        OPTIONS={"readOnly": 5}, AGENTS={"a": {"readOnly": False, "lastMessages": -1}, "b": None}
    )
    found = {fault.msg.split(":")[0]: fault for fault in check_settings()}
    assert set(found) == {"MASTRA_MEMORY options of OPTIONS", "MASTRA_MEMORY options of agent a"}
    assert {fault.id for fault in found.values()} == {"mastra_memory.E002"}
    assert "last_messages" in found["MASTRA_MEMORY options of agent a"].msg
