"""Settings of a worker that is killed in the middle of its work: small steps, short timeouts."""

from project import settings
from project.settings import *  # noqa: F403

# A dict of its own: the tests of this process read the other one.
MASTRA_MEMORY = settings.MASTRA_MEMORY | {
    "EMBEDDER": "tests.support.worker_settings.Slow",
    "EMBEDDER_TIMEOUT": 1.0,
}


class Slow:
    """An embedder that takes its time, so that there is a middle, and writes down what it did.

    EMBEDDED_LOG names the file.
    """

    passage_bytes = 1_000
    batch_size = 50
    is_local = True

    def embed(self, texts, *, query, timeout):  # type: ignore[no-untyped-def]
        """Vectors of the texts."""
        import os
        import time

        from mastra_memory.embedding.embedder import Embeddings

        time.sleep(float(os.environ.get("EMBEDDER_PAUSE") or 0.02))
        if log := os.environ.get("EMBEDDED_LOG"):
            with open(log, "ab", buffering=0) as file:
                file.write("".join(f"{text}\n" for text in texts).encode())
        return Embeddings([[float(len(text)), 1.0] for text in texts])
