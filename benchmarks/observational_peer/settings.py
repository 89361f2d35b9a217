"""Settings of this service's side: an agent for each scenario, and the fake model."""

import os

from benchmarks.observational_peer.scenarios import SCENARIOS
from project.settings import *  # noqa: F403

DEBUG = False
CELERY_BROKER_URL = "memory://"  # The runner calls the tasks itself.
MASTRA_MEMORY = {
    "MODEL": "fake/model",
    "PROVIDERS": {
        "fake": {"base_url": os.environ.get("FAKE_MODEL_URL", ""), "api_key": "no-key"},
    },
    "AGENTS": {
        scenario.name: {"observationalMemory": dict(scenario.options)} for scenario in SCENARIOS
    },
}
