"""Settings of the second run of the tests: every optional feature of the memory is off."""

from project.settings import *  # noqa: F403

MASTRA_MEMORY = {}
