"""Settings while recall is measured: the service as it is, the default embedder, no debugging."""

from project.settings import *  # noqa: F403

DEBUG = False
MASTRA_MEMORY = {"OPTIONS": {"semanticRecall": True}}
