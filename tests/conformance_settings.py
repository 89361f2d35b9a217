"""Settings of the conformance run: the service with the kit's agents and the kit's test hooks."""

import os
from pathlib import Path

from project.settings import *  # noqa: F403
from tests.conformance_agents import read_agents

ROOT_URLCONF = "tests.conformance_server"
MASTRA_MEMORY = {
    "AGENTS": read_agents(Path(os.environ["CONFORMANCE_DIR"]) / "fixture" / "agents.json"),
    "EMBEDDER": "tests.conformance_embedder.embed",
    "RESOURCE_FOR_REQUEST": "tests.conformance_server.resource_for_request",
}
