"""How far observation of a thread or resource has come, in numbers."""

from dataclasses import dataclass

from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import generations, thresholds, tracking
from mastra_memory.observational.config import ObservationSettings, resolve_settings
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.thresholds import ReflectionDecision
from mastra_memory.observational.tracking import PendingCount
from mastra_memory.options import ObservationalMemoryOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationStatus:
    """The state of a record, and what is due according to its thresholds."""

    record: ObservationalRecord | None
    """The live record; None before the first use."""
    settings: ObservationSettings
    pending_messages: int
    pending_tokens: int
    """Tokens of all unobserved messages, those in chunks included."""
    unbuffered_tokens: int
    """Tokens of those that are in no chunk."""
    threshold: int
    """Tokens of unobserved messages from which they are observed."""
    observation_tokens: int
    """Tokens of the log."""
    reflection_threshold: int
    chunk_tokens: tuple[int, ...]
    """For each chunk that waits for activation, the tokens of its messages, oldest first."""

    @property
    def should_observe(self) -> bool:
        """Whether unobserved messages have reached the threshold."""
        return self.pending_tokens >= self.threshold

    @property
    def should_buffer(self) -> bool:
        """Whether a chunk should be prepared now."""
        return thresholds.should_buffer(
            pending=self.pending_tokens, unbuffered=self.unbuffered_tokens, settings=self.settings
        )

    @property
    def should_reflect(self) -> bool:
        """Whether the log has reached its threshold."""
        return self.observation_tokens >= self.reflection_threshold

    @property
    def can_activate(self) -> bool:
        """Whether a chunk waits for activation."""
        return bool(self.chunk_tokens)

    @property
    def chunk_count(self) -> int:
        """The number of chunks that wait for activation."""
        return len(self.chunk_tokens)

    @property
    def buffered_tokens(self) -> int:
        """The message tokens of all these chunks."""
        return sum(self.chunk_tokens)

    @property
    def error(self) -> str:
        """Why the last attempt failed; empty if it did not."""
        return self.record.error if self.record else ""

    @property
    def attempts(self) -> int:
        """How many attempts in a row have failed."""
        return self.record.attempts if self.record else 0

    @property
    def reflection_decision(self) -> ReflectionDecision:
        """What a worker would do about the size of the log."""
        record = self.record
        if record is None:
            return "none"
        return thresholds.decide_reflection(
            tokens=self.observation_tokens,
            settings=self.settings,
            has_buffered=bool(record.buffered_reflection),
            in_progress=record.is_reflecting or record.is_buffering_reflection,
            unproductive_tokens=record.unproductive_reflection_tokens,
        )

    @property
    def needs_work(self) -> bool:
        """Whether a worker has something to do.

        A log that could not be condensed is left alone until it grows.
        """
        is_reflection_due = self.reflection_decision != "none"
        return self.should_observe or self.should_buffer or is_reflection_due


def read_status(key: RecordKey, options: ObservationalMemoryOptions) -> ObservationStatus:
    """Return the status of a thread or resource, which need not have a record yet."""
    return build_status(generations.find_live(key), options, tracking.count_pending(key))


def read_status_without_log(
    key: RecordKey, options: ObservationalMemoryOptions
) -> ObservationStatus:
    """Return the status with a record that is read without its log and chunks."""
    return build_status(generations.find_live_state(key), options, tracking.count_pending(key))


def build_status(
    record: ObservationalRecord | None,
    options: ObservationalMemoryOptions,
    pending: PendingCount,
) -> ObservationStatus:
    """Return the status from a record and the counts of its unobserved messages."""
    settings = resolve_settings(options, record.config if record else None)
    tokens = record.observation_token_count if record else 0
    return ObservationStatus(
        record=record,
        settings=settings,
        pending_messages=pending.messages,
        pending_tokens=pending.tokens,
        unbuffered_tokens=pending.unbuffered_tokens,
        threshold=thresholds.observation_threshold(settings, tokens),
        observation_tokens=tokens,
        reflection_threshold=thresholds.reflection_threshold(settings, tokens),
        chunk_tokens=pending.chunk_tokens,
    )
