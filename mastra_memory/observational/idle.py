"""Idle time: what was prepared in advance is activated when nothing happens any more.

After some time the provider has dropped its cache of the prompt, so that changing it costs nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from mastra_memory.content import part_types, transcript
from mastra_memory.db import sql, times
from mastra_memory.exceptions import ClaimLost
from mastra_memory.models import ObservationalRecord, ObservationChunk
from mastra_memory.observational import claims, cycle, queries, reflecting
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.work import Work
from mastra_memory.types import StoredMessage

MAX_RECORDS = 1_000
"""How many records one run looks at, those that were changed longest ago first."""
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


def activate_idle() -> int:
    """Activate chunks and reflections after the time in the option `activate_after_idle`.

    Returns:
        The number of records where something was activated.
    """
    has_chunks = Q(pk__in=ObservationChunk.objects.buffered().values("record"))
    waiting = (
        ObservationalRecord.objects.live()
        .filter(has_chunks | ~Q(buffered_reflection=""))
        .defer("active_observations", "buffered_reflection")
    )
    count = 0
    for record in waiting.order_by("updated_at")[:MAX_RECORDS]:
        job = cycle.find_work(record)
        if job is not None and job.options.activate_after_idle is not None:
            count += _activate_if_idle(job, record)
    return count


def _activate_if_idle(job: Work, record: ObservationalRecord) -> bool:
    newest = _list_newest_answers(job.key)
    milliseconds = get_idle_milliseconds(job.get_settings(record), _get_model(newest))
    last_activity = get_last_activity(newest)
    if not is_idle(last_activity, milliseconds):
        return False
    try:
        count = cycle.activate_all(job, triggered_by="ttl", last_activity=last_activity)
        if count:
            claims.request_work(job.key, job.agent_id)  # The log may be long enough to reflect.
        return reflecting.activate_early(job, triggered_by="ttl") or count > 0
    except ClaimLost:
        return False  # The record was deleted or changed again and again. The next run looks again.


def _list_newest_answers(key: RecordKey) -> list[StoredMessage]:
    """Return the newest message of the assistant, if there is one."""
    rows = sql.fetch_all(queries.newest_answer(key), [key.subject_id])
    return [StoredMessage(*row) for row in rows]


def _get_model(messages: Sequence[StoredMessage]) -> str:
    """Return the model of the newest answer, `provider/model`, or an empty text."""
    for message in messages:
        for part in reversed(message.content.get("parts") or []):
            model = part.get("model") if part.get("type") == "step-start" else None
            if isinstance(model, str):
                return model
    return ""
