"""Settings of a server with an agent that has a schema for its working memory."""

from project import settings
from project.settings import *  # noqa: F403

MASTRA_MEMORY = settings.MASTRA_MEMORY | {
    "AGENTS": {
        "a": {},
        "by-keys": {"workingMemory": {"enabled": True, "schema": {"type": "object"}}},
    },
}
