"""Settings of the measured server: the service with open access on its own database."""

import os

from project import settings
from project.settings import *  # noqa: F403

# The options of the agent `test-agent` of the reference server: no embeddings, no observations,
# no generated titles.
MASTRA_MEMORY = settings.MASTRA_MEMORY | {
    "AGENTS": {"test-agent": {}},
    "OPTIONS": {"lastMessages": 10, "workingMemory": {"enabled": True}},
}

# One client sends every request, so a limit per client would stop the measurement.
REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_CLASSES": []}

# BENCH_TOKENS=1 keeps the service's own authentication, to measure what an access token costs.
if os.environ.get("BENCH_TOKENS") != "1":
    REST_FRAMEWORK["DEFAULT_AUTHENTICATION_CLASSES"] = [
        "benchmarks.authentication.SuperuserAuthentication"
    ]
