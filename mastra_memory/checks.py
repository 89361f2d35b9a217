"""System checks: what is wrong with the settings, told at start-up."""

from typing import Any

from django.core import checks

from mastra_memory import conf
from mastra_memory.exceptions import AgentNotFound, InvalidInput, MemoryNotConfigured


@checks.register("mastra_memory")
def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Unknown names in `MASTRA_MEMORY` and options that cannot be read."""
    unknown = conf.unknown_settings()
    if unknown:
        names = ", ".join(unknown)
        return [
            checks.Error(f"MASTRA_MEMORY has unknown settings: {names}", id="mastra_memory.E001")
        ]
    return [
        checks.Error(f"MASTRA_MEMORY options of {name}: {fault}", id="mastra_memory.E002")
        for name, fault in _faulty_options()
    ]


def _faulty_options() -> list[tuple[str, str]]:
    faults = []
    for agent_id in (None, *conf.app_settings().AGENTS):
        try:
            conf.agent_options(agent_id)
        except (AgentNotFound, MemoryNotConfigured):
            continue
        except InvalidInput as error:
            faults.append((f"agent {agent_id}" if agent_id else "OPTIONS", str(error)))
    return faults
