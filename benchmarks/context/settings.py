"""Settings for measuring contexts: the service without debugging and with local models."""

from project.settings import *  # noqa: F403

DEBUG = False
MASTRA_MEMORY = {"MODEL": "local/extractive", "EMBEDDER": "local/wordllama"}
