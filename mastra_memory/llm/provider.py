"""Text models of providers, through pydantic-ai.

This module is imported when a provider's model is first used, because pydantic-ai loads slowly.
"""

import asyncio
import os
from collections.abc import Mapping
from decimal import Decimal
from inspect import signature
from typing import Any

from django.utils.module_loading import import_string
from pydantic_ai import Agent, StructuredDict
from pydantic_ai import exceptions as model_errors
from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelResponse,
    UserContent,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from mastra_memory import conf
from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.llm.text_models import Attachment, TextReply, TextRequest

# Mastra's names of providers that have another name in pydantic-ai.
_PROVIDER_NAMES = {
    "amazon-bedrock": "bedrock",
    "fireworks-ai": "fireworks",
    "github-models": "github",
    "google-vertex": "google-cloud",
    "togetherai": "together",
}
_RETRYABLE_ERRORS = (
    model_errors.ModelRateLimitError,
    model_errors.ModelUnavailableError,
    model_errors.ModelServerError,
    model_errors.ModelConnectionError,
    model_errors.ModelRequestTimeout,
)
_PERMANENT_ERRORS = (model_errors.ModelQuotaExceededError, model_errors.ModelRequestRejectedError)
_REFUSALS = (
    model_errors.UserError,
    model_errors.AgentRunError,
    ImportError,
    ValueError,
    TypeError,
)
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
# Imported when needed: the library `openai` may be absent if another provider is used.
_COMPATIBLE_PROVIDER = "pydantic_ai.providers.openai_compatible.OpenAICompatibleProvider"
MILLION = 1_000_000


def generate(request: TextRequest) -> TextReply:
    """Call the provider's model.

    Raises:
        ProviderUnavailable: The same call may succeed later.
        ProviderRefused: The same call would fail again.
    """
    name = request.model or conf.app_settings().MODEL
    try:
        return asyncio.run(_generate(name, request))
    except TimeoutError as error:
        raise ProviderUnavailable(f"{name} did not answer in time") from error
    except model_errors.ModelAPIError as error:
        error_class = ProviderUnavailable if is_retryable(error) else ProviderRefused
        raise error_class(f"{name}: {error.message}") from error
    except _REFUSALS as error:
        raise ProviderRefused(f"{name}: {error}") from error


def is_retryable(error: model_errors.ModelAPIError) -> bool:
    """Return whether the same call may succeed later."""
    if isinstance(error, _PERMANENT_ERRORS):
        return False
    if isinstance(error, model_errors.ModelHTTPError):
        return error.status_code in _RETRYABLE_STATUSES or error.status_code >= 500
    return isinstance(error, _RETRYABLE_ERRORS)


async def _generate(name: str, request: TextRequest) -> TextReply:
    seconds = conf.app_settings().MODEL_TIMEOUT
    settings = ModelSettings(timeout=seconds, max_retries=request.retries)
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    model = _build_model(name)
    if request.temperature is not None and _accepts_temperature(model):
        settings["temperature"] = request.temperature
    agent = Agent(model, instructions=request.instructions, output_type=_build_output_type(request))
    async with asyncio.timeout(seconds * (1 + request.retries)), model:
        result = await agent.run(_build_prompt(request), model_settings=settings)
    usage = result.usage
    is_text = request.output is None
    return TextReply(
        text=result.output if is_text else "",
        value=None if is_text else result.output,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost=_compute_cost(name, result.new_messages()),
    )


def _accepts_temperature(model: Model) -> bool:
    """Return False for OpenAI's reasoning models, which refuse a temperature."""
    return not model.profile.get("openai_supports_reasoning", False)


def _build_prompt(request: TextRequest) -> str | list[UserContent]:
    if not request.attachments:
        return request.prompt
    return [request.prompt, *map(_build_attachment, request.attachments)]


def _build_attachment(attachment: Attachment) -> UserContent:
    if attachment.data:
        return BinaryContent(attachment.data, media_type=attachment.mime_type)
    is_image = attachment.mime_type.startswith("image/")
    return ImageUrl(attachment.url) if is_image else DocumentUrl(attachment.url)


def _build_output_type(request: TextRequest) -> Any:
    if request.output is None:
        return str
    if isinstance(request.output, Mapping):
        return StructuredDict(dict(request.output))
    return request.output


def _build_model(name: str) -> Model:
    kind, provider = build_provider(name)
    if kind == "openai" and "base_url" in _get_provider_settings(name.partition("/")[0]):
        kind = "openai-chat"  # the protocol of most servers with an OpenAI-compatible API
    return infer_model(f"{kind}:{name.partition('/')[2]}", provider_factory=lambda _: provider)


def build_provider(name: str) -> tuple[str, Provider[Any]]:
    """Return pydantic-ai's name for the provider in `provider/model`, and the provider.

    Each call gets a provider with its own HTTP client, because each call runs in its own event
    loop and both are closed after it.
    """
    requested_name = name.partition("/")[0]
    provider_settings = _get_provider_settings(requested_name)
    provider_name = _PROVIDER_NAMES.get(requested_name, requested_name)
    try:
        provider_class = infer_provider_class(provider_name)
    except ValueError:
        return "openai-chat", _build_compatible_provider(provider_name, provider_settings)
    if "base_url" in provider_settings and "base_url" not in signature(provider_class).parameters:
        return "openai-chat", _build_compatible_provider(provider_name, provider_settings)
    provider: Provider[Any] = provider_class(**provider_settings)
    return provider_name, provider


def _build_compatible_provider(
    provider_name: str, provider_settings: Mapping[str, str]
) -> Provider[Any]:
    if "base_url" not in provider_settings:
        raise ProviderRefused(
            f"Unknown provider {provider_name}. If it is compatible with OpenAI's API, set its "
            f"base_url in the setting PROVIDERS."
        )
    provider: Provider[Any] = import_string(_COMPATIBLE_PROVIDER)(
        provider_name, **provider_settings
    )
    return provider


def _get_provider_settings(provider_name: str) -> dict[str, str]:
    """Return `base_url` and `api_key` of a provider, from the settings or the environment."""
    provider_settings = dict(conf.app_settings().PROVIDERS.get(provider_name, {}))
    prefix = provider_name.upper().replace("-", "_")
    for key in ("base_url", "api_key"):
        value = os.environ.get(f"{prefix}_{key.upper()}")
        if key not in provider_settings and value:
            provider_settings[key] = value
    return provider_settings


def _compute_cost(name: str, messages: list[ModelMessage]) -> Decimal | None:
    """Return the price of all answers in US dollars, or None if a price is unknown.

    The setting PRICES is used first, then the price list of pydantic-ai.
    """
    answers = [message for message in messages if isinstance(message, ModelResponse)]
    price = conf.app_settings().PRICES.get(name)
    if price is not None:
        return sum((_compute_price(price, answer) for answer in answers), Decimal(0))
    try:
        return sum((answer.cost().total_price for answer in answers), Decimal(0))
    except (LookupError, ValueError, AssertionError):
        return None


def estimate_cost(name: str, *, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Return what an answer with these tokens would cost, or None if the price is unknown."""
    provider_name, _, model_name = name.partition("/")
    answer = ModelResponse(
        parts=[],
        usage=RequestUsage(input_tokens=input_tokens, output_tokens=output_tokens),
        model_name=model_name,
        provider_name=_PROVIDER_NAMES.get(provider_name, provider_name),
    )
    return _compute_cost(name, [answer])


def _compute_price(price: Mapping[str, float], answer: ModelResponse) -> Decimal:
    input_price = Decimal(str(price.get("input", 0))) * answer.usage.input_tokens
    output_price = Decimal(str(price.get("output", 0))) * answer.usage.output_tokens
    return (input_price + output_price) / MILLION
