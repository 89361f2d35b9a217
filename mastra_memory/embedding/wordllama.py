"""`local/wordllama`, the default embedder: a small model whose package contains the weights."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any

from mastra_memory.embedding.embedder import Embeddings
from mastra_memory.exceptions import InvalidInput, ProviderRefused

NAME = "local/wordllama"
BATCH_SIZE = 32


def create_embedder(model: str) -> "WordLlamaEmbedder":
    """Return the embedder.

    Raises:
        InvalidInput: Another model of `local/` is requested.
        ProviderRefused: The package wordllama is not installed.
    """
    if model != NAME:
        raise InvalidInput(f"Unknown embedder {model}; did you mean {NAME}?")
    return WordLlamaEmbedder()


@contextmanager
def _preserve_root_logger() -> Iterator[None]:
    """Restore the level and the handlers of the root logger afterwards."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in set(root.handlers).difference(handlers):
        root.removeHandler(handler)


class WordLlamaEmbedder:
    """A local embedder with 256 dimensions. It is fast and does not download anything."""

    passage_bytes = 1_600
    batch_size = 256
    is_local = True

    def __init__(self) -> None:
        spec = util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ProviderRefused(f"{NAME} needs the package wordllama: pip install wordllama")
        # Importing and loading take about half a second each, so this is done only when needed.
        with _preserve_root_logger():  # Importing wordllama configures the root logger.
            from wordllama import WordLlama

        folder = Path(spec.origin).parent
        self._model: Any = WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Return the vectors, not normalised. A text of unknown words has a vector of zeros."""
        # Sort by length: within a batch all texts are padded to the longest.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors = self._model.embed([texts[index] for index in order], batch_size=BATCH_SIZE)
        positions = sorted(range(len(texts)), key=order.__getitem__)
        return Embeddings([vectors[position] for position in positions])
