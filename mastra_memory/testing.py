"""Fakes of the text model and the embedder, for this package's tests and for host projects."""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from mastra_memory import llm
from mastra_memory.embedding import embedder
from mastra_memory.embedding.embedder import Embeddings, Vector
from mastra_memory.exceptions import MastraMemoryError, ProviderRefused

FakeAnswer = str | BaseException | Callable[[llm.TextRequest], Any]
"""A text, an exception to raise, or a function that takes the request and returns one of these.

If the request has an `output`, the answer is a value instead of a text.
"""


def _convert_error(error: BaseException) -> BaseException:
    """Convert exceptions as the real models do: foreign ones become `ProviderRefused`."""
    if isinstance(error, MastraMemoryError) or not isinstance(error, Exception):
        return error
    return ProviderRefused(f"{type(error).__name__}: {error}")


class FakeLLM:
    """A text model that answers all requests of this process inside its `with` block.

        with FakeLLM("Trip to Rome") as model:
            ...
        assert len(model.requests) == 1

    Attributes:
        requests: All requests so far, in order.
    """

    def __init__(self, *answers: FakeAnswer | Any, tokens: tuple[int, int] = (100, 10)) -> None:
        """Set the answers.

        Args:
            answers: Returned in order; the last one is repeated.
            tokens: The input and output tokens that each reply reports.
        """
        self.answers = list(answers) or ["An answer"]
        self.tokens = tokens
        self.requests: list[llm.TextRequest] = []
        self._block = ExitStack()

    def __call__(self, request: llm.TextRequest) -> llm.TextReply:
        """Return the next answer, or raise it if it is an exception."""
        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request)
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise _convert_error(answer)
        is_text = request.output is None
        return llm.TextReply(
            text=answer if is_text else "",
            value=None if is_text else answer,
            input_tokens=self.tokens[0],
            output_tokens=self.tokens[1],
        )

    def __enter__(self) -> Self:
        self._block.enter_context(llm.override_model(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._block.close()


class FakeEmbedder:
    """An embedder that makes all vectors of this process inside its `with` block.

        with FakeEmbedder(dimensions=8) as model:
            ...
        assert model.texts == ["I like tea"]

    Texts that share words have similar vectors.

    Attributes:
        texts: The texts that were embedded to be stored, in order.
        queries: The texts that were embedded to search for them, in order.
    """

    passage_bytes = 1_000
    batch_size = 100
    is_local = True

    def __init__(
        self,
        *,
        dimensions: int = 64,
        vectors: Mapping[str, Vector] | None = None,
        tokens_each: int = 0,
        error: BaseException | None = None,
    ) -> None:
        """Set what the embedder returns.

        Args:
            dimensions: The length of the vectors.
            vectors: The vectors of certain texts; all others are computed from their words.
            tokens_each: The tokens that are reported for each text.
            error: Raised by every call.
        """
        self.dimensions = dimensions
        self.vectors = dict(vectors or {})
        self.tokens_each = tokens_each
        self.error = error
        self.texts: list[str] = []
        self.queries: list[str] = []
        self._block = ExitStack()

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Return the vectors of the texts."""
        if self.error is not None:
            raise self.error
        (self.queries if query else self.texts).extend(texts)
        vectors = [self.vectors.get(text) or self._of_words(text) for text in texts]
        return Embeddings(vectors, self.tokens_each * len(texts))

    def _of_words(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for word in re.findall(r"\w+", text.lower()) or [""]:
            vector[hashlib.sha256(word.encode()).digest()[0] % self.dimensions] += 1.0
        length = math.hypot(*vector)
        return [part / length for part in vector]

    def __enter__(self) -> Self:
        self._block.enter_context(embedder.override_embedder(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._block.close()
