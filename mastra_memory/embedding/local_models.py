"""Larger local embedders: `fastembed/<model>` and `sentence-transformers/<model>`.

Both libraries are extras. They download a model when it is first used, unless the name is the path
of a folder.
"""

from collections.abc import Callable, Sequence
from typing import Any

from django.utils.module_loading import import_string

from mastra_memory.embedding.embedder import Embeddings
from mastra_memory.exceptions import ProviderRefused

BYTES_PER_TOKEN = 3
"""The usual minimum of bytes per token (in Chinese; English has more). With it, no passage is
longer than the model accepts."""
DEFAULT_MAX_TOKENS = 512
"""The usual limit of these models. Used if a model does not define its own."""


class LibraryEmbedder:
    """Adapt a model of one of these libraries to the `Embedder` interface."""

    is_local = True
    batch_size = 64

    def __init__(
        self,
        tokens: int,
        embed_passages: Callable[[list[str]], Any],
        embed_queries: Callable[[list[str]], Any],
    ) -> None:
        self.passage_bytes = tokens * BYTES_PER_TOKEN
        self._embed_passages = embed_passages
        self._embed_queries = embed_queries

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Return the vectors of the texts."""
        embed = self._embed_queries if query else self._embed_passages
        return Embeddings(list(embed(list(texts))))


def create_fastembed(name: str) -> LibraryEmbedder:
    """Return a model of fastembed. Raises `ProviderRefused` if it cannot be loaded."""
    model_class = _import_library("fastembed.TextEmbedding", "fastembed")
    model = _load_model(name, lambda: model_class(name.partition("/")[2]))
    return LibraryEmbedder(DEFAULT_MAX_TOKENS, model.passage_embed, model.query_embed)


def create_sentence_transformer(name: str) -> LibraryEmbedder:
    """Return a model of sentence-transformers. Raises `ProviderRefused` if it cannot be loaded."""
    model_class = _import_library(
        "sentence_transformers.SentenceTransformer", "sentence-transformers"
    )
    model = _load_model(name, lambda: model_class(name.partition("/")[2]))
    embed_passages = getattr(model, "encode_document", model.encode)  # Both exist since version 5.
    embed_queries = getattr(model, "encode_query", model.encode)
    return LibraryEmbedder(
        model.max_seq_length or DEFAULT_MAX_TOKENS, embed_passages, embed_queries
    )


def _import_library(path: str, extra: str) -> Any:
    try:
        return import_string(path)
    except ImportError as error:
        raise ProviderRefused(
            f"This embedder needs the extra: pip install 'django-mastra-memory[{extra}]' ({error})"
        ) from error


def _load_model(name: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except (OSError, ValueError, RuntimeError) as error:
        raise ProviderRefused(f"{name} cannot be loaded: {error}") from error
