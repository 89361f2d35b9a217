"""Settings for measuring recall: the service without debugging, with a choice of embedder."""

import os

from project.settings import *  # noqa: F403

DEBUG = False
MASTRA_MEMORY = {
    "EMBEDDER": os.environ.get("RECALL_EMBEDDER") or "local/wordllama",
    "OPTIONS": {"semanticRecall": True},
}
