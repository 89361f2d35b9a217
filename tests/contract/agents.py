"""The agents of a conformance kit as the setting `AGENTS`."""

import json
from pathlib import Path
from typing import Any

Agents = dict[str, dict[str, Any] | None]
STUB_MODEL = "conformance/stub-model"


def read_agents(path: Path) -> Agents:
    """Give the options of every agent, sub-agents next to their hosts; None means no memory."""
    fixture = json.loads(path.read_text())
    agents: Agents = {agent["id"]: _options(agent["memory"]) for agent in fixture["agents"]}
    for host, sub_agent in fixture["subAgents"].items():
        if host != "comment":
            agents[host] = None
            agents[sub_agent["id"]] = _options(sub_agent["memory"])
    return agents


def _options(memory: dict[str, Any] | None) -> dict[str, Any] | None:
    """The options of one agent; the model called `stub` goes by the name it shows to clients."""
    if memory is None:
        return None
    options: dict[str, Any] = memory["options"]
    observing = options.get("observationalMemory")
    if isinstance(observing, dict) and observing.get("model") == "stub":
        return options | {"observationalMemory": observing | {"model": STUB_MODEL}}
    return options
