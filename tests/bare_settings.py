"""Settings of the second run of the tests: every optional feature of the memory is off."""

from typing import Any

from project.settings import *  # noqa: F403

MASTRA_MEMORY: dict[str, Any] = {}
