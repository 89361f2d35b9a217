"""Limits on the calls of models in a block of code."""

from decimal import Decimal

import pytest

from mastra_memory import llm
from mastra_memory.exceptions import UsageLimitReached
from mastra_memory.testing import FakeLLM

pytestmark = pytest.mark.django_db
REQUEST = llm.TextRequest(purpose=llm.Purpose.SUMMARY, instructions="", prompt="x")


def priced(cost: str) -> llm.TextModel:
    return lambda request: llm.TextReply(text="x", input_tokens=7, output_tokens=3,
                                         cost=Decimal(cost))  # fmt: skip


def test_limit_usage__counts_calls_tokens_and_cost() -> None:
    with llm.override_model(priced("0.25")), llm.limit_usage() as meter:
        llm.generate(REQUEST), llm.generate(REQUEST)
    assert (meter.calls, meter.input_tokens, meter.output_tokens) == (2, 14, 6)
    assert (meter.cost, meter.unpriced_calls) == (Decimal("0.50"), 0)
    with FakeLLM("x"):
        llm.generate(REQUEST)
    assert meter.calls == 2


def test_limit_usage__refuses_further_calls() -> None:
    with FakeLLM("x") as model, llm.limit_usage(max_calls=1):
        llm.generate(REQUEST)
        with pytest.raises(UsageLimitReached, match="1 calls"):
            llm.generate(REQUEST)
    assert len(model.requests) == 1


def test_limit_usage__the_call_that_reaches_the_cost_is_the_last() -> None:
    with llm.override_model(priced("0.6")), llm.limit_usage(max_cost=Decimal(1)) as meter:
        llm.generate(REQUEST), llm.generate(REQUEST)
        with pytest.raises(UsageLimitReached, match="1 US dollars"):
            llm.generate(REQUEST)
    assert meter.calls == 2


def test_estimate_cost__local_models_are_free(memory_settings) -> None:  # type: ignore[no-untyped-def]
    memory_settings(PRICES={"some/model": {"input": 2, "output": 10}})
    tokens = {"input_tokens": 1_000_000, "output_tokens": 100_000}
    assert llm.estimate_cost("local/extractive", **tokens) == 0
    assert llm.estimate_cost("some/model", **tokens) == 3
    assert llm.estimate_cost("google/gemini-2.5-flash", **tokens) == Decimal("0.55")
    assert llm.estimate_cost("unknown/model", **tokens) is None
