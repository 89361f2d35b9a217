"""Idle time: when nothing has happened for so long that chunks are activated early."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from mastra_memory.content import part_types, transcript
from mastra_memory.db import times
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.types import StoredMessage

_MINUTE, _HOUR = 60_000.0, 3_600_000.0
# How long providers keep the cache of a prompt. After that, changing the prompt costs nothing.
_CACHE_TIMES = {
    "openai": _HOUR,
    "google": 24 * _HOUR,
    "deepseek": _HOUR,
    "groq": 2 * _HOUR,
}
_DEFAULT_CACHE_TIME = 5 * _MINUTE
_SHORT_OPENAI_MODELS = ("gpt-4", "gpt-5", "gpt-5.1", "gpt-5.2", "gpt-5.3", "gpt-5.4")
_RETENTIONS = {"24h": _HOUR, "in_memory": 5 * _MINUTE}


def get_idle_milliseconds(
    settings: ObservationSettings, model: str = "", *, cache_retention: str = ""
) -> float | None:
    """Return after how much idle time chunks are activated, or None if they are not.

    Args:
        settings: The settings of the record.
        model: The agent's model, `provider/model`, for the value `auto`.
        cache_retention: OpenAI's option for prompt caching, `24h` or `in_memory`.
    """
    if settings.activate_after_idle != "auto":
        return settings.activate_after_idle
    return get_cache_milliseconds(model, cache_retention=cache_retention)


def get_cache_milliseconds(model: str, *, cache_retention: str = "") -> float:
    """Return how long the provider of a model keeps the cache of a prompt."""
    provider, _, name = model.partition("/")
    provider = provider.split(".")[0]
    if provider == "openai":
        if cache_retention in _RETENTIONS:
            return _RETENTIONS[cache_retention]
        if _is_short_lived(name):
            return _DEFAULT_CACHE_TIME
    return _CACHE_TIMES.get(provider, _DEFAULT_CACHE_TIME)


def _is_short_lived(name: str) -> bool:
    """Return whether OpenAI keeps the cache of this model for minutes only."""
    family = name.split("-")
    version = "-".join(family[:2])
    return version.startswith("gpt-4") or version in _SHORT_OPENAI_MODELS


def is_idle(
    last_activity: datetime | None, milliseconds: float | None, *, now: datetime | None = None
) -> bool:
    """Return whether the idle time has passed since the last activity."""
    if last_activity is None or milliseconds is None:
        return False
    return (now or times.now()) - last_activity >= timedelta(milliseconds=milliseconds)


def get_last_activity(messages: Iterable[StoredMessage]) -> datetime | None:
    """Return the time of the last part of the newest message of the assistant.

    Data parts do not count.
    """
    for message in sorted(messages, key=lambda item: item.sort_key, reverse=True):
        if message.role == "assistant":
            return _get_last_part_time(message)
    return None


def _get_last_part_time(message: StoredMessage) -> datetime:
    parts = message.content.get("parts") or []
    for index in range(len(parts) - 1, -1, -1):
        if not isinstance(part_types.read_part(parts, index), part_types.UnknownPart):
            return transcript.get_part_time(parts[index]) or message.created_at
    return message.created_at
