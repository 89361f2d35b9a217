"""Settings of a server with an agent whose working memory has a schema."""

from project import settings
from project.settings import *  # noqa: F403

MASTRA_MEMORY = settings.MASTRA_MEMORY | {
    "AGENTS": {
        "a": {},
        "by-keys": {"workingMemory": {"enabled": True, "schema": {"type": "object"}}},
    },
}
