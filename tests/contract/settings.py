"""Settings of the conformance run: the service with the kit's agents and the kit's test hooks."""

import os
from pathlib import Path

from project.settings import *  # noqa: F403
from tests.contract.agents import read_agents

ROOT_URLCONF = "tests.contract.server"
MASTRA_MEMORY = {
    "AGENTS": read_agents(Path(os.environ["CONFORMANCE_DIR"]) / "fixture" / "agents.json"),
    "EMBEDDER": "tests.contract.embedder.embed",
    "RESOURCE_FOR_REQUEST": "tests.contract.server.resource_for_request",
}
