"""Settings while recall is measured: the service as it is, no debugging, an embedder to choose."""

import os

from project.settings import *  # noqa: F403

DEBUG = False
MASTRA_MEMORY = {
    "EMBEDDER": os.environ.get("RECALL_EMBEDDER") or "local/wordllama",
    "OPTIONS": {"semanticRecall": True},
}
