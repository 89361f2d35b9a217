"""Settings of the server that is measured: the service as it is, but open, on its own database."""

import os

from benchmarks.contenders import OUR_DATABASE
from project import settings
from project.settings import *  # noqa: F403

# As the agent of Mastra's server that is measured: nothing is embedded, observed or titled there.
MASTRA_MEMORY = settings.MASTRA_MEMORY | {
    "AGENTS": {"test-agent": {}},
    "OPTIONS": {"lastMessages": 10, "workingMemory": {"enabled": True}},
}
DATABASES = {"default": settings.DATABASES["default"] | {"NAME": OUR_DATABASE}}

# With BENCH_TOKENS=1 callers need an access token as usual: that is how its cost is measured.
if os.environ.get("BENCH_TOKENS") != "1":
    REST_FRAMEWORK = settings.REST_FRAMEWORK | {
        "DEFAULT_AUTHENTICATION_CLASSES": ["benchmarks.authentication.Anyone"]
    }
