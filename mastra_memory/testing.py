"""Fakes for tests, ours and those of host projects: a text model that says what you want."""

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from mastra_memory import llm

Answer = str | BaseException | Callable[[llm.Request], Any]
"""A text, an exception to raise, or a function of the request; a value where one is asked for."""


class FakeLLM:
    """Answers every request in this process while its block runs, and remembers them.

    Answers are given in order, the last one for ever:

        with FakeLLM("Trip to Rome") as model:
            ...
        assert len(model.requests) == 1
    """

    def __init__(self, *answers: Answer | Any, tokens: tuple[int, int] = (100, 10)) -> None:
        self.answers = list(answers) or ["An answer"]
        self.tokens = tokens
        self.requests: list[llm.Request] = []
        self._block = ExitStack()

    def __call__(self, request: llm.Request) -> llm.Reply:
        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request)
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise answer
        given = {"text": answer} if request.output is None else {"value": answer}
        return llm.Reply(**given, input_tokens=self.tokens[0], output_tokens=self.tokens[1])

    def __enter__(self) -> Self:
        self._block.enter_context(llm.use(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._block.close()
