"""`local/wordllama`: a small embedder on this machine, with its weights in its package."""

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
    """The embedder. Raises `InvalidInput` for another name, `ProviderRefused` without wordllama."""
    if model != NAME:
        raise InvalidInput(f"There is no embedder {model}; there is {NAME}")
    return WordLlamaEmbedder()


@contextmanager
def _preserve_root_logger() -> Iterator[None]:
    """Give the root logger back the level and the handlers that it had."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in set(root.handlers).difference(handlers):
        root.removeHandler(handler)


class WordLlamaEmbedder:
    """256 dimensions, tens of thousands of short texts a second, nothing is ever downloaded."""

    passage_bytes = 1_600
    batch_size = 256
    is_local = True

    def __init__(self) -> None:
        spec = util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ProviderRefused(f"{NAME} needs the package wordllama: pip install wordllama")
        # Both import and loading take about half a second, and no more than this process needs.
        with _preserve_root_logger():  # wordllama sets up the whole process's when it is imported
            from wordllama import WordLlama

        folder = Path(spec.origin).parent
        self._model: Any = WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Vectors of the texts, not normalised; a text without any known word has a zero one."""
        # Texts of like length beside each other: within a group all are padded to the longest.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        made = self._model.embed([texts[index] for index in order], batch_size=BATCH_SIZE)
        places = sorted(range(len(texts)), key=order.__getitem__)
        return Embeddings([made[place] for place in places])
