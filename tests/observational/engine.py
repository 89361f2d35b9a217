"""A fake Observer and Reflector, and what tests of the whole cycle need."""

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import F
from django.utils import timezone

from mastra_memory import llm
from mastra_memory.memory import Memory
from mastra_memory.models import (
    Message,
    MessageObservation,
    ObservationalRecord,
    ObservationChunk,
)
from mastra_memory.observational import claims, cycle
from mastra_memory.types import StoredThread
from tests.support.factories import a_message

SMALL: dict[str, Any] = {
    "observation": {"messageTokens": 1_000, "bufferTokens": 250, "bufferActivation": 0.8},
    "reflection": {"observationTokens": 2_000},
}
"""Small thresholds: a message of `words(100)` has about 100 tokens."""
SYNC: dict[str, Any] = {"observation": {"messageTokens": 1_000, "bufferTokens": False}}
"""Without buffering."""
_numbers = itertools.count(1)


def words(tokens: int) -> str:
    """A text of about this many tokens, and different each time."""
    number = next(_numbers)
    return " ".join(f"w{number}" for _ in range(max(1, tokens)))


class FakeObserver:
    """Answer each request with one observation per 100 tokens of input, or as `answers` say.

    Attributes:
        requests: All requests so far, in order.
        answers: Texts, or exceptions to raise, to use before the usual answers.
    """

    def __init__(self, *answers: str | Exception, observation_tokens: int = 40) -> None:
        self.requests: list[llm.TextRequest] = []
        self.answers = list(answers)
        self.observation_tokens = observation_tokens

    def __call__(self, request: llm.TextRequest) -> llm.TextReply:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else self._answer(request)
        if isinstance(answer, Exception):
            raise answer
        return llm.TextReply(text=answer, input_tokens=100, output_tokens=10)

    def _answer(self, request: llm.TextRequest) -> str:
        number = len(self.requests)
        if request.purpose == llm.Purpose.REFLECTION:
            # About a tenth of the log. A much shorter answer would be taken for a refusal.
            rest = " ".join(f"{number}y{index}" for index in range(len(request.prompt) // 70 - 60))
            notes = f"Date: Jan 1, 2024\n* 🔴 Reflection {number} {rest}".rstrip()
            return f"<observations>\n{notes}\n</observations>"
        text = " ".join(f"{number}x{index}" for index in range(self.observation_tokens))
        threads = re.findall(r'^<thread id="([^"]+)">$', request.prompt, re.MULTILINE)
        notes = f"Date: Jan 1, 2024\n* 🔴 (00:00) Observation {number} {text}"
        if threads:
            notes = "\n".join(
                f'<thread id="{name}">\n{notes} {name}\n</thread>' for name in threads
            )
        return f"<observations>\n{notes}\n</observations>"

    @property
    def purposes(self) -> list[str]:
        """What was asked for, in order."""
        return [str(request.purpose) for request in self.requests]


@contextmanager
def observer(*answers: str | Exception, **options: Any) -> Iterator[FakeObserver]:
    """Use a fake Observer and Reflector in the block."""
    fake = FakeObserver(*answers, **options)
    with llm.override_model(fake):
        yield fake


def say(memory: Memory, thread: StoredThread, tokens: int = 100, **fields: Any) -> str:
    """Save one message of about this many tokens, and return its id."""
    message = a_message(thread, text=words(tokens), **fields)
    memory.save_messages([message])
    return str(message["id"])


def do_due_work(limit: int = 20) -> int:
    """Do all due work as the workers would. Return the number of cycles."""
    for count in range(limit):
        due = claims.list_due_records()
        if not due:
            return count
        for record_id in due:
            cycle.run_due_cycle(record_id)
    raise AssertionError("the work never ends")


def states(thread: StoredThread, scope: str = "thread") -> dict[str, str]:
    """The state of each message of a thread: observed, buffered or pending."""
    rows = MessageObservation.objects.filter(thread_id=thread.id, scope=scope)
    found = dict(
        rows.values_list("message_id")
        .annotate(activated=F("chunk__activated_at"))
        .values_list("message_id", "activated")
    )
    chunked = set(rows.exclude(chunk=None).values_list("message_id", flat=True))
    ids = Message.objects.filter(thread_id=thread.id).values_list("id", flat=True)
    return {
        key: "observed" if found.get(key) else "buffered" if key in chunked else "pending"
        for key in ids
    }


def count_states(thread: Any) -> dict[str, int]:
    """How many messages of a thread are in each state."""
    found = list(states(thread).values())
    return {name: found.count(name) for name in sorted(set(found))}


def make_due(thread: Any) -> None:
    """Let the time of the next attempt pass."""
    ObservationalRecord.objects.live().filter(thread_id=thread.id).update(due_at=timezone.now())


def live(thread: StoredThread) -> ObservationalRecord:
    """The live record of a thread."""
    return ObservationalRecord.objects.live().get(thread_id=thread.id)


def check_invariants() -> None:
    """Check what must always hold, whatever has happened."""
    for record in ObservationalRecord.objects.live():
        family = ObservationalRecord.objects.filter(
            scope=record.scope, thread_id=record.thread_id, resource_id=record.resource_id
        )
        numbers = sorted(family.values_list("generation_count", flat=True))
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert record.generation_count == numbers[-1]
        assert family.live().count() == 1
        assert record.observation_token_count == _count(record.active_observations)
        buffered = ObservationChunk.objects.buffered().filter(record__in=family)
        assert set(buffered.values_list("record_id", flat=True)) <= {record.pk}
    for chunk in ObservationChunk.objects.all():
        scope = ObservationalRecord.objects.get(pk=chunk.record_id).scope
        rows = MessageObservation.objects.filter(chunk=chunk, scope=scope)
        assert set(rows.values_list("message_id", flat=True)) <= set(chunk.message_ids)
    ids = list(MessageObservation.objects.values_list("message_id", "scope"))
    assert len(ids) == len(set(ids))


def _count(text: str) -> int:
    from mastra_memory.content import tokens

    return tokens.get_token_counter().text(text)
