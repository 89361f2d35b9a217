"""Decide from token counts when to buffer, activate, observe and reflect."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from mastra_memory.observational.config import ObservationSettings

ReflectionDecision = Literal["none", "buffer", "activate", "reflect"]

MAX_OVERSHOOT = 0.95
"""How far an activation may exceed its target, as a share of the retention floor."""
MIN_REMAINING_TOKENS = 1_000
"""Activation prefers to leave this many tokens of messages, or the floor if it is smaller."""
NEAR_THRESHOLD_CHUNKS = 1.1
"""Smaller chunks are made when fewer than this many chunks fit below the threshold."""
MIN_REFLECTION_THRESHOLD = 1_000
REFLECTION_TARGET_RATIO = 0.75
"""The share of its input that a reflection made in advance should not exceed."""


def observation_threshold(settings: ObservationSettings, observation_tokens: int) -> int:
    """Return how many tokens unobserved messages must have to be observed.

    With a shared budget, messages may use the tokens that the log does not need.

    Args:
        settings: The settings of the record.
        observation_tokens: The tokens of the log.
    """
    if not settings.share_token_budget:
        return settings.message_tokens
    total = settings.message_tokens + settings.observation_tokens
    return max(total - observation_tokens, settings.message_tokens)


def reflection_threshold(settings: ObservationSettings, observation_tokens: int) -> int:
    """Return the reflection threshold to report in a status.

    Args:
        settings: The settings of the record.
        observation_tokens: The tokens of the log.
    """
    if not settings.share_token_budget:
        return settings.observation_tokens
    total = settings.message_tokens + settings.observation_tokens
    left = total - observation_threshold(settings, observation_tokens)
    return max(left, MIN_REFLECTION_THRESHOLD)


def get_buffer_interval(*, pending: int, settings: ObservationSettings) -> float:
    """Return the size of the next chunk in tokens. It is halved shortly before the threshold."""
    size = settings.buffer_tokens or 0
    return size / 2 if pending >= get_half_chunk_threshold(settings) else size


def get_half_chunk_threshold(settings: ObservationSettings) -> float:
    """Return the number of unobserved tokens from which chunks have half the size."""
    return settings.message_tokens - NEAR_THRESHOLD_CHUNKS * (settings.buffer_tokens or 0)


def should_buffer(*, pending: int, unbuffered: int, settings: ObservationSettings) -> bool:
    """Return whether a chunk should be prepared now.

    Mastra counts the intervals in `pending` and in a stored position, and compares the two. The
    position is the size of the last chunk, so after two chunks the comparison is always true. We
    compare the tokens that are in no chunk.

    Args:
        pending: The tokens of all unobserved messages.
        unbuffered: The tokens of those that are in no chunk.
        settings: The settings of the record.
    """
    if not settings.asynchronous or not settings.buffer_tokens:
        return False
    if pending >= settings.message_tokens:
        return False
    return unbuffered >= get_buffer_interval(pending=pending, settings=settings)


def choose_chunks(
    chunk_tokens: Sequence[int], *, pending: int, settings: ObservationSettings
) -> int:
    """Return how many chunks to activate, oldest first; 0 only if there are none.

    The aim is to leave `retention_floor` tokens of messages in the context. Two counts come
    close: the smallest that removes enough, and the largest that removes less. The first is
    preferred, unless it removes much more than needed or leaves almost no messages. From
    `block_after` tokens on, it may remove much more.

    Args:
        chunk_tokens: The message tokens of each chunk, oldest first.
        pending: The tokens of all unobserved messages, those in chunks included. 0 means that
            only the messages in chunks count.
        settings: The settings of the record.
    """
    if not chunk_tokens:
        return 0
    pending = pending or sum(chunk_tokens)
    floor = settings.retention_floor or 0
    target = max(0, pending - floor)
    min_remaining = min(MIN_REMAINING_TOKENS, floor)
    sums = list(accumulate(chunk_tokens))
    over = next((n for n, total in enumerate(sums, 1) if total >= target), 0)
    under = max((n for n, total in enumerate(sums, 1) if 0 < total < target), default=0)
    is_forced = settings.block_after is not None and pending >= settings.block_after

    def leaves_enough(count: int) -> bool:
        return pending - sums[count - 1] >= min_remaining

    if over and leaves_enough(over):
        if is_forced or sums[over - 1] - target <= MAX_OVERSHOOT * floor:
            return over
    if under and leaves_enough(under):
        return under
    return over or 1


def decide_reflection(
    *,
    tokens: int,
    settings: ObservationSettings,
    has_buffered: bool,
    in_progress: bool,
    unproductive_tokens: int | None,
) -> ReflectionDecision:
    """Return what to do about the size of the log.

    Args:
        tokens: The tokens of the log.
        settings: The settings of the record.
        has_buffered: Whether a reflection was made in advance.
        in_progress: Whether a reflection is being made.
        unproductive_tokens: The tokens of the log at the last reflection that failed or did not
            make it small enough. The same log is not reflected again at once.
    """
    if in_progress:
        return "none"
    buffer_at = settings.reflection_buffer_at if settings.asynchronous else None
    may_buffer = buffer_at is not None and tokens >= buffer_at and not has_buffered
    if tokens < settings.observation_tokens:
        return "buffer" if may_buffer and tokens != unproductive_tokens else "none"
    if settings.asynchronous and has_buffered:
        return "activate"
    block_after = settings.reflection_block_after if settings.asynchronous else None
    if block_after is not None and tokens < block_after:
        return "buffer" if may_buffer and tokens != unproductive_tokens else "none"
    return "none" if tokens == unproductive_tokens else "reflect"


def plan_buffered_reflection(
    *, tokens: int, lines: int, settings: ObservationSettings
) -> tuple[int, int, int]:
    """Return how much of the log to reflect in advance.

    Args:
        tokens: The tokens of the log.
        lines: The number of its lines.
        settings: The settings of the record.

    Returns:
        The number of lines from the start, about how many tokens they have, and how many tokens
        their reflection should not exceed.
    """
    average = tokens / lines if lines else 0
    buffer_at = settings.reflection_buffer_at or settings.observation_tokens
    count = min(math.floor(buffer_at / average), lines) if average else lines
    size = math.floor(average * count + 0.5)
    return count, size, math.floor(REFLECTION_TARGET_RATIO * size + 0.5)


def may_activate_reflection_early(
    *, tail_tokens: int, reflection_tokens: int, new_log_tokens: int, settings: ObservationSettings
) -> bool:
    """Return whether idle time may activate a reflection.

    It may not if the lines after the reflection are fewer than the reflection, or if the new log
    would be so small that nothing is gained.
    """
    buffer_at = settings.reflection_buffer_at or 0
    minimum = math.floor(REFLECTION_TARGET_RATIO * (settings.observation_tokens - buffer_at) + 0.5)
    return tail_tokens >= reflection_tokens and new_log_tokens >= minimum
