"""The service with every feature switched on, so that no route refuses for that reason alone."""

from project.settings import *  # noqa: F403
from project.settings import MASTRA_MEMORY as SERVED

MASTRA_MEMORY = SERVED | {
    "OPTIONS": SERVED["OPTIONS"] | {"observationalMemory": {"enabled": True}},
}
