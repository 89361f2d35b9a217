"""Fakes for tests, ours and those of host projects: a text model and an embedder."""

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
"""A text, an exception to raise, or a function of the request; a value where one is asked for."""


def _convert_error(error: BaseException) -> BaseException:
    """What is no error of ours is one of the provider's."""
    if isinstance(error, MastraMemoryError) or not isinstance(error, Exception):
        return error
    return ProviderRefused(f"{type(error).__name__}: {error}")


class FakeLLM:
    """Answers every request in this process while its block runs, and remembers them.

    Answers are given in order, the last one for ever:

        with FakeLLM("Trip to Rome") as model:
            ...
        assert len(model.requests) == 1
    """

    def __init__(self, *answers: FakeAnswer | Any, tokens: tuple[int, int] = (100, 10)) -> None:
        self.answers = list(answers) or ["An answer"]
        self.tokens = tokens
        self.requests: list[llm.TextRequest] = []
        self._block = ExitStack()

    def __call__(self, request: llm.TextRequest) -> llm.TextReply:
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
    """Makes all vectors in this process while its block runs, and counts what it is asked.

    Texts that share words have similar vectors; `vectors` gives some texts vectors of your own, and
    `error` is raised instead of answering:

        with FakeEmbedder(dimensions=8) as model:
            ...
        assert model.texts == ["I like tea"]
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
        self.dimensions = dimensions
        self.vectors = dict(vectors or {})
        self.tokens_each = tokens_each
        self.error = error
        self.texts: list[str] = []
        """What was embedded to be found, in order."""
        self.queries: list[str] = []
        """What was embedded to find something."""
        self._block = ExitStack()

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Vectors of the texts."""
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
