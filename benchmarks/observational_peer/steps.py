"""What both engines are compared by after each turn."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from benchmarks.observational_peer.fake_model import Call

_LOG = re.compile(
    r"^<observations>\n(.*?)(?=^</observations>|^<current-task>|^<suggested-response>|\Z)",
    re.DOTALL | re.MULTILINE,
)
_HINT = re.compile(r"^<(current-task|suggested-response)>\n(.*?)\n</\1>", re.DOTALL | re.MULTILINE)
_GROUP_ID = re.compile(r'(?<=<observation-group id=")[0-9a-f]+|(?<=^## Group `)[0-9a-f]+', re.M)


@dataclass(frozen=True, slots=True)
class Step:
    """The state after a turn, in the form in which both sides can be compared."""

    seen_messages: Any
    """The ids of the messages that the actor reads."""
    seen_log: Any
    """The observations that the actor reads, without blank lines."""
    seen_hints: Any
    seen_continuation: Any
    """Whether the actor gets the message that asks it to continue."""
    seen_other_threads: Any
    calls: Any
    """The requests to the model: what they are for, and the messages in them."""
    generation: Any
    origin: Any
    log: Any
    log_tokens: Any
    cursor: Any
    pending_tokens: Any
    """As counted by the status."""
    unbuffered_tokens: Any
    stored_pending_tokens: Any
    chunk_messages: Any
    """The ids of the messages of each chunk."""
    chunk_tokens: Any
    """The tokens of the messages and of the text of each chunk."""
    chunk_cursors: Any
    chunk_texts: Any
    reflection_in_advance: Any
    """Its text, tokens, input tokens and number of lines."""
    buffered_at_tokens: Any
    buffered_at_time: Any
    observed_ids: Any
    total_tokens_observed: Any
    stored_hints: Any
    thread_cursor: Any


FIELDS = tuple(field.name for field in fields(Step))


def build_step(
    *,
    system: str,
    message_ids: Sequence[str],
    has_continuation: bool,
    record: Mapping[str, Any],
    status: Mapping[str, Any],
    metadata: Mapping[str, Any],
    calls: Iterable[Call],
) -> Step:
    """Return the comparable state of either side.

    Args:
        system: The system prompt of the actor.
        message_ids: The messages of the actor.
        has_continuation: Whether one of them asks it to continue.
        record: The record as Mastra's HTTP API writes it.
        status: `pendingTokens` and `unbufferedPendingTokens`.
        metadata: `metadata.mastra.om` of the thread.
        calls: The requests to the model in this turn.
    """
    chunks = record.get("bufferedObservationChunks") or []
    return Step(
        seen_messages=list(message_ids),
        seen_log=_read_log(system),
        seen_hints={tag: text for tag, text in _HINT.findall(system)},
        seen_continuation=has_continuation,
        seen_other_threads="START_OTHER_CONVERSATIONS_BLOCK" in system,
        calls=[(call.purpose, call.transcript) for call in calls],
        generation=record.get("generationCount"),
        origin=record.get("originType"),
        log=_normalize(record.get("activeObservations") or ""),
        log_tokens=record.get("observationTokenCount"),
        cursor=record.get("lastObservedAt"),
        pending_tokens=status["pendingTokens"],
        unbuffered_tokens=status["unbufferedPendingTokens"],
        stored_pending_tokens=record.get("pendingMessageTokens"),
        chunk_messages=[chunk["messageIds"] for chunk in chunks],
        chunk_tokens=[(chunk["messageTokens"], chunk["tokenCount"]) for chunk in chunks],
        chunk_cursors=[chunk["lastObservedAt"] for chunk in chunks],
        chunk_texts=[_normalize(chunk["observations"]) for chunk in chunks],
        reflection_in_advance=_read_reflection(record),
        buffered_at_tokens=record.get("lastBufferedAtTokens"),
        buffered_at_time=record.get("lastBufferedAtTime"),
        observed_ids=sorted(record.get("observedMessageIds") or []),
        total_tokens_observed=record.get("totalTokensObserved"),
        stored_hints={
            key: metadata.get(key) for key in ("currentTask", "suggestedResponse", "threadTitle")
        },
        thread_cursor=(metadata.get("lastObservedMessageCursor"), metadata.get("lastObservedAt")),
    )


def _read_log(system: str) -> list[str]:
    match = _LOG.search(system)
    return [line for line in _normalize(match[1]).splitlines() if line.strip()] if match else []


def _normalize(text: str) -> str:
    """Replace the random ids of groups by their order."""
    numbers: dict[str, str] = {}
    return _GROUP_ID.sub(lambda match: numbers.setdefault(match[0], f"g{len(numbers)}"), text)


def _read_reflection(record: Mapping[str, Any]) -> tuple[Any, ...] | None:
    text = record.get("bufferedReflection")
    if not text:
        return None
    return (
        text,
        record.get("bufferedReflectionTokens"),
        record.get("bufferedReflectionInputTokens"),
        record.get("reflectedObservationLineCount"),
    )
