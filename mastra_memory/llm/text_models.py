"""Ask a text model by name; whoever answers, what it used is on record."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.module_loading import import_string

from mastra_memory import conf
from mastra_memory.exceptions import InvalidInput
from mastra_memory.llm import usage
from mastra_memory.models import ModelUsage

Purpose = ModelUsage.Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """One question to a model."""

    purpose: Purpose
    instructions: str
    prompt: str
    model: str = ""
    """`provider/model`; empty: the setting `MODEL`."""
    output: Any = None
    """A pydantic model, or a JSON schema, that the answer must fit; None for text."""
    retries: int = 0
    """How often to ask again when the provider is unavailable."""
    max_tokens: int | None = None
    """The longest answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReply:
    """What the model answered."""

    text: str = ""
    value: Any = None
    """The answer as `TextRequest.output` asks for."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    """US dollars; None when nobody knows the price."""


TextModel = Callable[[TextRequest], TextReply]
"""What answers requests. Raises `ProviderUnavailable` and `ProviderRefused`, nothing else."""

# Each is imported when first asked: a process that asks no model loads no model's library.
_LOCAL_MODELS = {"local/extractive": "mastra_memory.llm.extractive.generate"}
_PROVIDER_MODEL = "mastra_memory.llm.provider.generate"

_overrides: list[TextModel] = []


def generate(
    request: TextRequest, *, thread_id: str | None = None, resource_id: str | None = None
) -> TextReply:
    """The model's answer; tokens and cost are recorded for the thread, else for the resource.

    A call takes seconds: never ask inside a transaction. Raises `ProviderUnavailable` for what
    may heal by itself, `ProviderRefused` for what will not, `InvalidInput` for a faulty name.
    """
    name = request.model or conf.app_settings().MODEL
    reply = _find_model(name)(request)
    usage.record_usage(
        request.purpose,
        name,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cost=reply.cost,
        thread_id=thread_id,
        resource_id=resource_id,
    )
    return reply


def _find_model(name: str) -> TextModel:
    if _overrides:
        return _overrides[-1]
    if "/" not in name.strip("/"):
        raise InvalidInput(f"A model is named provider/model, not {name!r}")
    if name.startswith("local/") and name not in _LOCAL_MODELS:
        raise InvalidInput(f"There is no model {name}; there is {', '.join(_LOCAL_MODELS)}")
    answer: TextModel = import_string(_LOCAL_MODELS.get(name, _PROVIDER_MODEL))
    return answer


@contextmanager
def override_model(model: TextModel) -> Iterator[None]:
    """Have `model` answer everything in this process meanwhile, whatever name is asked."""
    _overrides.append(model)
    try:
        yield
    finally:
        _overrides.remove(model)
