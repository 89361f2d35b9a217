"""What a worker needs to know about the record that it works on."""

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Self
from zoneinfo import ZoneInfo

from mastra_memory.models import ObservationalRecord
from mastra_memory.observational.config import ObservationSettings, resolve_settings
from mastra_memory.observational.keys import RecordKey
from mastra_memory.options import (
    MemoryOptions,
    ObservationalMemoryOptions,
    WorkingMemoryOptions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work on one thread or resource, with the options of the agent that asked for it."""

    key: RecordKey
    options: ObservationalMemoryOptions
    working_memory: WorkingMemoryOptions | None = None
    """The options of the working memory, if the Observer keeps it."""
    agent_id: str | None = None
    user_name: str = ""
    """The person who asked for the work; empty if a threshold did."""

    @classmethod
    def build(
        cls, key: RecordKey, options: MemoryOptions, *, agent_id: str | None, user_name: str = ""
    ) -> Self:
        """Return the work for an agent whose observational memory is on."""
        observational = options.observational_memory
        assert observational is not None
        manages = observational.observation.manage_working_memory
        return cls(
            key=key,
            options=observational,
            working_memory=options.working_memory if manages else None,
            agent_id=agent_id,
            user_name=user_name,
        )

    @property
    def batch_tokens(self) -> int:
        """How many tokens of messages one call of the Observer reads from a backlog."""
        observation = self.options.observation
        return max(observation.message_tokens, observation.max_tokens_per_batch)

    def get_settings(self, record: ObservationalRecord | None) -> ObservationSettings:
        """Return the settings for the record, with its overrides applied."""
        return resolve_settings(self.options, record.config if record else None)


def get_timezone(record: ObservationalRecord) -> tzinfo:
    """Return the time zone of the days and times that the Observer reads and writes."""
    try:
        return ZoneInfo(record.observed_timezone or "UTC")
    except (KeyError, ValueError, OSError):
        return UTC
