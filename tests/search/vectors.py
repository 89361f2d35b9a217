"""Stored vectors of our own choosing, for tests of what is done with them."""

from collections.abc import Mapping, Sequence

from mastra_memory.embedding import indexing, queue
from mastra_memory.testing import FakeEmbedder
from mastra_memory.types import StoredThread
from tests.support.factories import a_message, save

MODEL = "test/model"


def store(thread: StoredThread, vectors: Mapping[str, Sequence[float]], *, at: float = 0) -> None:
    """A message for each vector, called as it is, a second apart."""
    batch = [a_message(thread, key, text=key, at=at + n) for n, key in enumerate(vectors)]
    save(batch)
    queue.enqueue(MODEL, everything=True)
    with FakeEmbedder(vectors=vectors):
        while indexing.embed_batch(MODEL)[0]:
            pass


def at_angle(cosine: float) -> list[float]:
    """A vector that has this cosine with `[1, 0]`."""
    return [cosine, (1 - cosine**2) ** 0.5]
