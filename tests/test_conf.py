"""Settings follow changes at run time, and agents have their own options."""

from collections.abc import Callable

import pytest
from django.test import override_settings

from mastra_memory import conf
from mastra_memory.exceptions import AgentNotFound, MemoryNotConfigured


def test_app_settings__follow_override_settings() -> None:
    for largest in (1, 2):
        with override_settings(MASTRA_MEMORY={"MAX_PER_PAGE": largest}):
            assert conf.app_settings().MAX_PER_PAGE == largest
    with override_settings(MASTRA_MEMORY={}):
        assert conf.app_settings() == conf.AppSettings()


def test_get_agent_options__follow_override_settings() -> None:
    for last in (3, 4):
        with override_settings(MASTRA_MEMORY={"OPTIONS": {"lastMessages": last}}):
            assert conf.get_agent_options("unknown").last_messages == last


def test_get_agent_options__an_agent_overrides_the_defaults(
    memory_settings: Callable[..., None],
) -> None:
    memory_settings(
        OPTIONS={"lastMessages": 3, "readOnly": True},
        AGENTS={"own": {"lastMessages": 5}, "plain": {}, "none": None},
    )
    assert conf.get_agent_options(None).last_messages == 3
    assert conf.get_agent_options("plain").last_messages == 3
    own = conf.get_agent_options("own")
    assert (own.last_messages, own.read_only) == (5, True)
    with pytest.raises(MemoryNotConfigured):
        conf.get_agent_options("none")
    with pytest.raises(AgentNotFound):
        conf.get_agent_options("unknown")


def test_app_settings__are_read_once_for_each_dict() -> None:
    with override_settings(MASTRA_MEMORY={"MAX_PER_PAGE": 7}):
        assert conf.app_settings() is conf.app_settings()
