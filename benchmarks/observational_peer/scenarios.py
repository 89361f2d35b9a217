"""The conversations and options that both engines get."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

SAMPLES = Path(__file__).resolve().parents[2] / "project" / "samples"
SAMPLE_NAMES = (
    "postgres-upgrade",
    "broken-tent-pole",
    "lisbon-trip",
    "morning-brief",
    "sql-help",
    "api-401",
    "webhook-signature",
    "late-parcel",
    "refund-denied",
    "account-takeover",
    "sourdough",
)
"""The sample conversations, played one after the other."""
START = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
PAUSE = timedelta(hours=2, minutes=47)
"""The time between two turns; a conversation of many turns has many days."""
ANSWER_PAUSE = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of the user and the answer, in Mastra's format."""

    thread_id: str
    resource_id: str
    user: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A conversation, and the options of observational memory."""

    name: str
    title: str
    options: Mapping[str, Any]
    """`observationalMemory` in Mastra's names, without the model."""
    samples: Sequence[str] = SAMPLE_NAMES
    threads: int = 1
    """The turns are dealt out to this many threads of one resource."""
    equal_steps: int = 0
    """How many steps at least pass before the log or the messages of the actor differ."""
    reflects_at_end: bool = False
    """Whether `reflect` is called after the last turn."""

    def make_turns(self) -> list[Turn]:
        """Return all turns, oldest first."""
        pairs = [pair for name in self.samples for pair in _read_pairs(name)]
        return [self._make_turn(number, *pair) for number, pair in enumerate(pairs)]

    def _make_turn(self, number: int, question: Any, reply: Any) -> Turn:
        thread_id = f"{self.name}-thread-{number % self.threads}"
        resource_id = f"{self.name}-resource"
        moment = START + number * PAUSE
        user, answer = (
            {
                "id": f"{self.name}-{number:03d}-{role}",
                "role": role,
                "threadId": thread_id,
                "resourceId": resource_id,
                "createdAt": format_time(created_at),
                "content": {"format": 2, "parts": _make_parts(content, created_at)},
            }
            for role, content, created_at in (
                ("user", question, moment),
                ("assistant", reply, moment + ANSWER_PAUSE),
            )
        )
        return Turn(thread_id, resource_id, user, answer)


def format_time(moment: datetime) -> str:
    """Return the time as Mastra writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _read_pairs(name: str) -> Iterator[tuple[Any, Any]]:
    """Yield the messages of the user that have an answer, with the answer."""
    sample = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    for first, second in pairwise(sample["messages"]):
        if "user" in first and "assistant" in second:
            yield first["user"], second["assistant"]


def _make_parts(content: Any, created_at: datetime) -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    # Mastra downloads attachments before it calls the model. The files of the samples have no host.
    parts = [part for part in parts if part["type"] not in ("file", "image")]
    # Mastra gives a part without a time the present one.
    return [dict(part) | {"createdAt": int(created_at.timestamp() * 1000)} for part in parts]


SCENARIOS = (
    Scenario(
        "buffering",
        "One thread, observed and reflected in advance (the default)",
        {"observation": {"messageTokens": 1000}, "reflection": {"observationTokens": 800}},
        equal_steps=22,
    ),
    Scenario(
        "at-once",
        "One thread, observed and reflected at once",
        {
            "observation": {"messageTokens": 600, "bufferTokens": False},
            "reflection": {"observationTokens": 500},
        },
        equal_steps=16,
        reflects_at_end=True,
    ),
    Scenario(
        "retrieval",
        "One thread with tool calls, observed at once, with retrieval groups",
        {
            "retrieval": True,
            "observation": {"messageTokens": 500, "bufferTokens": False},
            "reflection": {"observationTokens": 1200},
        },
        samples=SAMPLE_NAMES[1:],
        equal_steps=24,
    ),
    Scenario(
        "resource",
        "Three threads of one resource, observed at once",
        {
            "scope": "resource",
            "observation": {"messageTokens": 800, "maxTokensPerBatch": 500},
            "reflection": {"observationTokens": 900},
        },
        threads=3,
        equal_steps=1,
    ),
)
