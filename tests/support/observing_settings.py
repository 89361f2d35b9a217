"""Settings of a worker that observes with a model of a test. The test's environment names both."""

import json
import os

from project import settings
from project.settings import *  # noqa: F403

# A dict of its own: the tests of this process read the other one.
MASTRA_MEMORY = settings.MASTRA_MEMORY | {
    "OPTIONS": json.loads(os.environ["OBSERVATION_OPTIONS"]),
    "MODEL": "acme/observer",
    "MODEL_TIMEOUT": float(os.environ["OBSERVATION_MODEL_TIMEOUT"]),
    "PROVIDERS": {"acme": {"base_url": os.environ["OBSERVATION_MODEL_URL"], "api_key": "key"}},
}
CELERY_BEAT_SCHEDULE = {
    "resume": {"task": "mastra_memory.tasks.resume", "schedule": 1.0, "options": {"expires": 5.0}}
}
