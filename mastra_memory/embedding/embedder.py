"""The port to embedders: ask one for vectors, whoever makes them."""

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
    """Vectors in the order of their texts, all of one length."""

    vectors: Sequence[Vector]
    tokens: int = 0
    """What a provider charges for; 0 for a model on this machine."""

    @property
    def dimensions(self) -> int:
        """The length of the vectors; 0 when there are none."""
        return len(self.vectors[0]) if len(self.vectors) else 0


@runtime_checkable
class Embedder(Protocol):
    """What makes vectors. Raises `ProviderUnavailable` and `ProviderRefused`, nothing else."""

    passage_bytes: int
    """The longest text it takes without cutting it, in bytes of UTF-8."""
    batch_size: int
    """How many texts it likes at a time."""
    is_local: bool
    """Whether it runs on this machine, costs nothing and needs no network."""

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Vectors of the texts; some models treat a query differently from a passage."""
        ...


# Each is imported when first asked: a process that embeds nothing loads no model's library.
_LOCAL_FACTORIES = {
    "local/": "mastra_memory.embedding.wordllama.create_embedder",
    "fastembed/": "mastra_memory.embedding.local_models.create_fastembed",
    "sentence-transformers/": "mastra_memory.embedding.local_models.create_sentence_transformer",
}
_PROVIDER_FACTORY = "mastra_memory.embedding.provider.create_embedder"

RETRY_DELAYS_SECONDS = (0.2, 1.0)
"""Seconds before another attempt when a provider is unavailable."""
MAX_CACHED_QUERIES = 1_000
MAX_SQUARED_NORM = 3.4e38
"""The database keeps vectors in single precision; their lengths are compared squared."""
MAX_DIMENSIONS = 16_000

_lock = threading.Lock()
_embedders: dict[str, Embedder] = {}
_overrides: list[Embedder] = []
_query_cache: OrderedDict[tuple[str, bytes], Embeddings] = OrderedDict()


def get_embedder(model: str) -> Embedder:
    """The embedder of that name, made once in this process.

    `provider/model`, or the dotted path of a class or a function of your own. Raises
    `InvalidInput` for a name that cannot be one, `ProviderRefused` where it cannot be loaded.
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
    maker = next(
        (path for prefix, path in _LOCAL_FACTORIES.items() if model.startswith(prefix)),
        _PROVIDER_FACTORY,
    )
    made: Embedder = import_string(maker)(model)
    return made


def _import_custom_embedder(path: str) -> Embedder:
    try:
        found = import_string(path)
    except ImportError as error:
        raise InvalidInput(
            f"EMBEDDER is neither provider/model nor a dotted path: {error}"
        ) from None
    made = found() if isinstance(found, type) else found
    return made if isinstance(made, Embedder) else FunctionEmbedder(made)


@dataclass(slots=True)
class FunctionEmbedder:
    """An embedder made of a function of a list of texts that answers a list of vectors."""

    function: Callable[[list[str]], Sequence[Vector]]
    passage_bytes: int = 8_000
    batch_size: int = 64
    is_local: bool = True

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Vectors of the texts."""
        return Embeddings(self.function(list(texts)))


def embed_passages(
    model: str,
    texts: Sequence[str],
    *,
    timeout: float | None = None,
) -> Embeddings:
    """Vectors of any number of texts, in batches; tries again where that may help.

    With `timeout` there is one attempt that may take so long. Raises `ProviderUnavailable` and
    `ProviderRefused`.
    """
    embedder = get_embedder(model)
    vectors: list[Vector] = []
    tokens = 0
    for start in range(0, len(texts), embedder.batch_size):
        batch = texts[start : start + embedder.batch_size]
        made = _embed_with_retries(embedder, model, batch, query=False, timeout=timeout)
        vectors += list(made.vectors)
        tokens += made.tokens
    return Embeddings(vectors, tokens)


def embed_query(model: str, texts: Sequence[str]) -> Embeddings:
    """Vectors of the passages of a query; asked again they cost nothing.

    Raises `ProviderUnavailable` and `ProviderRefused`.
    """
    key = (model, hashlib.sha256("\0".join(texts).encode()).digest())
    with _lock:
        if key in _query_cache:
            _query_cache.move_to_end(key)
            return Embeddings(_query_cache[key].vectors)
    made = _embed_with_retries(get_embedder(model), model, texts, query=True, timeout=None)
    with _lock:
        _query_cache[key] = made
        if len(_query_cache) > MAX_CACHED_QUERIES:
            _query_cache.popitem(last=False)
    return made


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
    """What it answers. Whatever goes wrong in it is an error of the port's: it may be anybody's."""
    try:
        made = embedder.embed(texts, query=query, timeout=timeout)
        _check_embeddings(model, made, len(texts))
    except MastraMemoryError:
        raise
    except OSError as error:
        raise ProviderUnavailable(f"{model}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise ProviderRefused(f"{model}: {type(error).__name__}: {error}") from error
    return made


def _check_embeddings(model: str, made: Embeddings, expected: int) -> None:
    lengths = {len(vector) for vector in made.vectors}
    if len(made.vectors) != expected or len(lengths) != 1 or 0 in lengths:
        raise ProviderRefused(
            f"{model} answered {len(made.vectors)} vectors of {sorted(lengths)} dimensions "
            f"to {expected} texts"
        )
    if max(lengths) > MAX_DIMENSIONS:
        raise ProviderRefused(f"{model} answered more than {MAX_DIMENSIONS} dimensions")
    if not all(compute_squared_norm(vector) < MAX_SQUARED_NORM for vector in made.vectors):
        raise ProviderRefused(f"{model} answered numbers that are too large, or none at all")


def compute_squared_norm(vector: Vector) -> float:
    """The square of the vector's length; 0 for one that points nowhere."""
    dot = getattr(vector, "dot", None)  # an array of numpy, which we do not import
    return float(dot(vector)) if dot else math.fsum(part * part for part in vector)


def format_vector(vector: Vector) -> str:
    """The vector as the database reads it."""
    return orjson.dumps(
        vector, option=orjson.OPT_SERIALIZE_NUMPY, default=_convert_to_json_type
    ).decode()


def _convert_to_json_type(value: Any) -> Any:
    """What is no plain number or list yet: an array of another library, one out of a table."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


@contextmanager
def override_embedder(embedder: Embedder) -> Iterator[None]:
    """Have `embedder` make all vectors in this process meanwhile, whatever name is asked."""
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
