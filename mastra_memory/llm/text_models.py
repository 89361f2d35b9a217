"""Call a text model by name, and record the tokens and cost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.module_loading import import_string

from mastra_memory import conf
from mastra_memory.exceptions import InvalidInput
from mastra_memory.llm import limits, usage
from mastra_memory.models import ModelUsage

Purpose = ModelUsage.Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file for a model: its bytes, or the URL of a linked file."""

    mime_type: str
    data: bytes = b""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """One request to a model."""

    purpose: Purpose
    instructions: str
    prompt: str
    model: str = ""
    """`provider/model`; if empty, the setting `MODEL`."""
    output: Any = None
    """A pydantic model or a JSON schema that the answer must match; None for text."""
    retries: int = 0
    """The number of retries if the provider is unavailable."""
    max_tokens: int | None = None
    """The maximum length of the answer."""
    temperature: float | None = None
    """How random the answer may be; None means the default of the provider."""
    attachments: tuple[Attachment, ...] = ()
    """Files that the model reads after the prompt."""
    target_tokens: int | None = None
    """The answer should be shorter than this. The prompt of a provider's model says so too."""
    level: int = 0
    """How much a reflection is compressed, from 0 (not at all) to 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReply:
    """The answer of a model."""

    text: str = ""
    value: Any = None
    """The answer in the format of `TextRequest.output`."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    """US dollars; None if the price is unknown."""


TextModel = Callable[[TextRequest], TextReply]
"""A function that answers requests. It raises only `ProviderUnavailable` and `ProviderRefused`."""

# Imported at the first call, so that a process without model calls does not load their libraries.
_LOCAL_MODELS = {"local/extractive": "mastra_memory.llm.extractive.generate"}
_PROVIDER_MODEL = "mastra_memory.llm.provider.generate"
_PROVIDER_ESTIMATE = "mastra_memory.llm.provider.estimate_cost"

_overrides: list[TextModel] = []


def generate(
    request: TextRequest, *, thread_id: str | None = None, resource_id: str | None = None
) -> TextReply:
    """Call the model and return its answer.

    A call takes seconds, so do not call it inside a transaction. Tokens and cost are recorded for
    the thread, or without a thread for the resource.

    Raises:
        ProviderUnavailable: The same call may succeed later.
        ProviderRefused: The same call would fail again.
        InvalidInput: The name of the model is invalid.
        UsageLimitReached: The block of `limits.limit_usage` allows no further call.
    """
    meter = limits.get_meter()
    if meter is not None:
        meter.check()
    name = request.model or conf.app_settings().MODEL
    reply = _find_model(name)(request)
    if meter is not None:
        is_free = reply.cost is None and name.startswith("local/")
        cost = Decimal(0) if is_free else reply.cost
        meter.add(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cost=cost)
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


def estimate_cost(name: str, *, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Return what calls with these tokens would cost in US dollars, or None if it is unknown."""
    if name.startswith("local/"):
        return Decimal(0)
    estimate: Callable[..., Decimal | None] = import_string(_PROVIDER_ESTIMATE)
    return estimate(name, input_tokens=input_tokens, output_tokens=output_tokens)


def check_name(name: str) -> None:
    """Check the name of a text model without loading its library.

    Raises:
        InvalidInput: It is not `provider/model`, or there is no such local model.
    """
    if "/" not in name.strip("/"):
        raise InvalidInput(f"The model must be named provider/model, not {name!r}")
    if name.startswith("local/") and name not in _LOCAL_MODELS:
        raise InvalidInput(f"Unknown model {name}. Local models: {', '.join(_LOCAL_MODELS)}")


def _find_model(name: str) -> TextModel:
    if _overrides:
        return _overrides[-1]
    check_name(name)
    model: TextModel = import_string(_LOCAL_MODELS.get(name, _PROVIDER_MODEL))
    return model


@contextmanager
def override_model(model: TextModel) -> Iterator[None]:
    """Use `model` for all requests of this process in the block, whatever model they name."""
    _overrides.append(model)
    try:
        yield
    finally:
        _overrides.remove(model)
