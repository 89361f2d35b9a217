"""Define the interface of embedders, and call them with retries, validation and a cache."""

import hashlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import orjson
from django.utils.module_loading import import_string

from mastra_memory import conf
from mastra_memory.exceptions import (
    InvalidInput,
    MastraMemoryError,
    ProviderRefused,
    ProviderUnavailable,
)

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors in the order of their texts, all of the same length."""

    vectors: Sequence[Vector]
    tokens: int = 0
    """Tokens that a provider charges for; 0 for a local model."""

    @property
    def dimensions(self) -> int:
        """The length of the vectors; 0 if there are none."""
        return len(self.vectors[0]) if len(self.vectors) else 0


@runtime_checkable
class Embedder(Protocol):
    """The interface of an embedder.

    `embed` raises `ProviderUnavailable` if a retry may help, and `ProviderRefused` otherwise.
    """

    passage_bytes: int
    """The maximum length of a text, in bytes of UTF-8."""
    batch_size: int
    """How many texts to send at a time."""
    is_local: bool
    """Whether it runs on this machine, so that it costs nothing and needs no network."""

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Return the vectors of the texts.

        Args:
            texts: The texts.
            query: Whether the texts are queries. Some models embed queries differently.
            timeout: The timeout in seconds.
        """
        ...


# Imported when first used, so that a process that embeds nothing loads no model library.
_LOCAL_FACTORIES = {
    "local/": "mastra_memory.embedding.wordllama.create_embedder",
    "fastembed/": "mastra_memory.embedding.local_models.create_fastembed",
    "sentence-transformers/": "mastra_memory.embedding.local_models.create_sentence_transformer",
}
_PROVIDER_FACTORY = "mastra_memory.embedding.provider.create_embedder"

RETRY_DELAYS_SECONDS = (0.2, 1.0)
"""Delays before the second and the third attempt if a provider is unavailable."""
MAX_CACHED_QUERIES = 1_000
"""Queries whose vectors are cached in this process."""
MAX_SQUARED_NORM = 3.4e38
"""The largest number in single precision, which pgvector uses for squared lengths."""
MAX_DIMENSIONS = 16_000
"""pgvector's limit for a column of type `vector`."""

_lock = threading.Lock()
_embedders: dict[str, Embedder] = {}
_overrides: list[Embedder] = []
_query_cache: OrderedDict[tuple[str, bytes], Embeddings] = OrderedDict()


def get_embedder(model: str) -> Embedder:
    """Return the embedder with this name. It is created once per process.

    Args:
        model: `provider/model`, or the dotted path of a class or a function; see `EMBEDDER`.

    Raises:
        InvalidInput: The name is invalid.
        ProviderRefused: The model cannot be loaded.
    """
    if _overrides:
        return _overrides[-1]
    with _lock:
        if model not in _embedders:
            try:
                _embedders[model] = _create_embedder(model)
            except MastraMemoryError:
                raise
            except Exception as error:
                raise ProviderRefused(f"{model} cannot be loaded: {error}") from error
        return _embedders[model]


def _create_embedder(model: str) -> Embedder:
    if "/" not in model:
        return _import_custom_embedder(model)
    factory = next(
        (path for prefix, path in _LOCAL_FACTORIES.items() if model.startswith(prefix)),
        _PROVIDER_FACTORY,
    )
    embedder: Embedder = import_string(factory)(model)
    return embedder


def _import_custom_embedder(path: str) -> Embedder:
    try:
        imported = import_string(path)
    except ImportError as error:
        raise InvalidInput(
            f"EMBEDDER must be provider/model or the dotted path of an embedder: {error}"
        ) from None
    embedder = imported() if isinstance(imported, type) else imported
    return embedder if isinstance(embedder, Embedder) else FunctionEmbedder(embedder)


@dataclass(slots=True)
class FunctionEmbedder:
    """An embedder that calls a function with a list of texts. The function returns the vectors."""

    function: Callable[[list[str]], Sequence[Vector]]
    passage_bytes: int = 8_000
    batch_size: int = 64
    is_local: bool = True

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Return the vectors of the texts."""
        return Embeddings(self.function(list(texts)))


def embed_passages(
    model: str,
    texts: Sequence[str],
    *,
    timeout: float | None = None,
) -> Embeddings:
    """Return the vectors of any number of texts, embedded in batches.

    Args:
        model: The name of the embedder.
        texts: Passages that are not longer than the embedder accepts; see `passages`.
        timeout: The timeout of a single attempt, in seconds. None means up to three attempts
            with a timeout of `EMBEDDER_TIMEOUT` seconds each.

    Raises:
        ProviderUnavailable: The embedder does not respond; a later retry may help.
        ProviderRefused: The embedder rejects the texts or returns invalid vectors.
    """
    embedder = get_embedder(model)
    vectors: list[Vector] = []
    tokens = 0
    for start in range(0, len(texts), embedder.batch_size):
        batch = texts[start : start + embedder.batch_size]
        embeddings = _embed_with_retries(embedder, model, batch, query=False, timeout=timeout)
        vectors += list(embeddings.vectors)
        tokens += embeddings.tokens
    return Embeddings(vectors, tokens)


def embed_query(model: str, texts: Sequence[str]) -> Embeddings:
    """Return the vectors of a query's passages, from the cache if it was embedded before.

    Vectors from the cache cost no tokens.

    Raises:
        ProviderUnavailable: The embedder does not respond; a later retry may help.
        ProviderRefused: The embedder rejects the query or returns invalid vectors.
    """
    key = (model, hashlib.sha256("\0".join(texts).encode()).digest())
    with _lock:
        if key in _query_cache:
            _query_cache.move_to_end(key)
            return Embeddings(_query_cache[key].vectors)
    embeddings = _embed_with_retries(get_embedder(model), model, texts, query=True, timeout=None)
    with _lock:
        _query_cache[key] = embeddings
        if len(_query_cache) > MAX_CACHED_QUERIES:
            _query_cache.popitem(last=False)
    return embeddings


def _embed_with_retries(
    embedder: Embedder, model: str, texts: Sequence[str], *, query: bool, timeout: float | None
) -> Embeddings:
    limit = conf.app_settings().EMBEDDER_TIMEOUT if timeout is None else timeout
    for pause in (*(RETRY_DELAYS_SECONDS if timeout is None else ()), None):
        try:
            return _call_embedder(embedder, model, texts, query, limit)
        except ProviderUnavailable:
            if pause is None:
                raise
            time.sleep(pause)
    raise AssertionError("unreachable")


def _call_embedder(
    embedder: Embedder, model: str, texts: Sequence[str], query: bool, timeout: float
) -> Embeddings:
    """Call the embedder once, and convert any error, because it may be code of the project."""
    try:
        embeddings = embedder.embed(texts, query=query, timeout=timeout)
        _check_embeddings(model, embeddings, len(texts))
    except MastraMemoryError:
        raise
    except OSError as error:
        raise ProviderUnavailable(f"{model}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise ProviderRefused(f"{model}: {type(error).__name__}: {error}") from error
    return embeddings


def _check_embeddings(model: str, embeddings: Embeddings, expected: int) -> None:
    lengths = {len(vector) for vector in embeddings.vectors}
    if len(embeddings.vectors) != expected or len(lengths) != 1 or 0 in lengths:
        raise ProviderRefused(
            f"{model} returned {len(embeddings.vectors)} vectors of {sorted(lengths)} dimensions "
            f"for {expected} texts"
        )
    if max(lengths) > MAX_DIMENSIONS:
        raise ProviderRefused(f"{model} returned vectors of more than {MAX_DIMENSIONS} dimensions")
    if not all(compute_squared_norm(vector) < MAX_SQUARED_NORM for vector in embeddings.vectors):
        raise ProviderRefused(
            f"{model} returned vectors with numbers that are too large or not finite"
        )


def compute_squared_norm(vector: Vector) -> float:
    """Return the square of the vector's length; 0 if all its numbers are 0."""
    dot = getattr(vector, "dot", None)  # A NumPy array; NumPy itself may not be installed.
    return float(dot(vector)) if dot else math.fsum(part * part for part in vector)


def format_vector(vector: Vector) -> str:
    """Return the vector as text that pgvector reads."""
    return orjson.dumps(
        vector, option=orjson.OPT_SERIALIZE_NUMPY, default=_convert_to_json_type
    ).decode()


def _convert_to_json_type(value: Any) -> Any:
    """Convert an array of a numeric library, or a NumPy number."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


@contextmanager
def override_embedder(embedder: Embedder) -> Iterator[None]:
    """Use `embedder` for every model name in this process, during the block. For tests."""
    _overrides.append(embedder)
    clear_query_cache()
    try:
        yield
    finally:
        _overrides.remove(embedder)
        clear_query_cache()


def clear_query_cache(**_: Any) -> None:
    """Empty the cache of query vectors."""
    with _lock:
        _query_cache.clear()
