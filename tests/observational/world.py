"""Conversations on which random operations act, and what must hold for them at any time.

Each text of a message is a fact of its own, such as `fact-3-1`: the first change of the third
message. The fake Observer writes down the facts that it reads, and the fake Reflector keeps all
that it is given. So the log shows for each message whether it was observed, and how often.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from mastra_memory import llm
from mastra_memory.content import tokens
from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.memory import Memory
from mastra_memory.models import (
    Message,
    MessageObservation,
    ObservationalRecord,
    ObservationChunk,
    Thread,
)
from mastra_memory.observational import tracking
from mastra_memory.observational.keys import RecordKey

FACT = re.compile(r"fact-(\d+)-(\d+)")
Fact = tuple[int, int]
"""The number of a text, and how often it was changed."""
DEGENERATE = "abc " * 1_000
ANSWERS: dict[str, Any] = {
    "good": None,
    "unavailable": ProviderUnavailable("The provider is down."),
    "refused": ProviderRefused("The provider refuses."),
    "broken": ZeroDivisionError("a fault of the library"),
    "empty": "",
    "no observations": "<observations>\n</observations>",
    "nonsense": "Sorry, I cannot help with that.",
    "degenerate": DEGENERATE,
    "huge": "<observations>\n* " + "x" * 60_000 + "\n</observations>",
    "unclosed": "<observations>\n* 🔴 (10:00) A line and nothing after it",
    "null bytes": "<observations>\n* 🔴 (10:00) \x00\ud800 odd\n</observations>",
}


def find_facts(text: str) -> Counter[Fact]:
    """Return how often each fact stands in a text."""
    return Counter((int(number), int(version)) for number, version in FACT.findall(text))


class FactModel:
    """A model that writes down the facts that it reads, unless `answers` names another answer.

    Attributes:
        answers: Names of `ANSWERS` for the next requests.
        meanwhile: Called during the next request, while nothing is locked.
        unreliable: Facts that a bad answer may have lost, although their messages are observed.
    """

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.meanwhile: list[Callable[[], None]] = []
        self.unreliable: set[Fact] = set()

    def __call__(self, request: llm.TextRequest) -> llm.TextReply:
        if self.meanwhile:
            self.meanwhile.pop()()
        name = self.answers.pop(0) if self.answers else "good"
        answer = ANSWERS[name]
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            answer = self._write(request)
        else:
            self.unreliable |= set(find_facts(request.prompt))
        return llm.TextReply(text=answer, input_tokens=10, output_tokens=1)

    def _write(self, request: llm.TextRequest) -> str:
        is_reflection = request.purpose == llm.Purpose.REFLECTION
        notes = self._reflect(request.prompt) if is_reflection else self._observe(request.prompt)
        return f"<observations>\n{notes}\n</observations>"

    def _observe(self, prompt: str) -> str:
        new = prompt.rpartition("<new-messages>")[2]
        sections = re.findall(r'<thread id="([^"]+)">(.*?)</thread>', new, re.DOTALL)
        if not sections:
            return self._note(new)
        return "\n".join(
            f'<thread id="{name}">\n{self._note(text)}\n</thread>' for name, text in sections
        )

    def _note(self, text: str) -> str:
        lines = (f"* 🔴 (10:00) User said fact-{n}-{v}" for n, v in find_facts(text))
        return "\n".join(["Date: Jan 1, 2024", *lines])

    def _reflect(self, prompt: str) -> str:
        text = prompt.rpartition("<observation-log>")[2].partition("</observation-log>")[0]
        pinned = re.findall(r"<pinned-observations>\n(.*?)\n</pinned-", prompt, re.DOTALL)
        kept = "\n".join(pinned)
        rest = find_facts(text) - find_facts(kept)
        words = " ".join(f"fact-{n}-{v}" for n, v in rest.elements())
        return f"Date: Jan 1, 2024\n* 🔴 (10:00) Facts: {words}\n{kept}".strip()


class World:
    """A few threads of two resources, and the rules that must hold for them.

    Attributes:
        facts: For each message that was ever stored, the facts that it had.
        moved: Facts that were in more than one place, so they may be in several logs, or twice in
            one.
        removed: Facts that a person deleted.
    """

    def __init__(self, memory: Memory, scope: str) -> None:
        self.memory, self.scope = memory, scope
        self.model = FactModel()
        self.facts: dict[str, set[Fact]] = {}
        self.versions: dict[int, int] = {}
        self.moved: set[int] = set()
        self.removed: set[Fact] = set()
        self.copies: Counter[int] = Counter()
        self.seen: dict[str, tuple[int, datetime | None]] = {}
        self.closed: dict[str, str] = {}
        self.numbers = itertools.count(1)

    # What tests act on

    def list_threads(self) -> list[Thread]:
        """Return all threads in a stable order."""
        return list(Thread.objects.order_by("created_at", "pk"))

    def list_messages(self) -> list[Message]:
        """Return all messages in a stable order."""
        return list(Message.objects.order_by("sequence"))

    def list_keys(self) -> list[RecordKey]:
        """Return the keys of all threads or resources."""
        threads = self.list_threads()
        if self.scope == "thread":
            return [RecordKey.about_thread(thread.id, thread.resource_id) for thread in threads]
        return [RecordKey.about_resource(name) for name in sorted({t.resource_id for t in threads})]

    def key_of(self, thread: Thread) -> RecordKey:
        """Return the key of a thread or of its resource."""
        if self.scope == "thread":
            return RecordKey.about_thread(thread.id, thread.resource_id)
        return RecordKey.about_resource(thread.resource_id)

    def new_fact(self, message_id: str, number: int | None = None) -> str:
        """Return the text of a message with a fact that no text had before."""
        number = next(self.numbers) if number is None else number
        version = self.versions[number] = self.versions.get(number, 0) + 1
        self.facts.setdefault(message_id, set()).add((number, version))
        return f"fact-{number}-{version} and some more words about it"

    def number_of(self, message_id: str) -> int:
        """Return the number of the text of a message."""
        return next(iter(self.facts[message_id]))[0]

    # What must hold

    def check(self) -> None:
        """Check all rules for what is stored now."""
        self._check_closed_generations()
        for key in self.list_keys():
            live = self._check_generations(key)
            if live is not None:
                self._check_record(live)
                self._check_messages(key, live)
        orphans = MessageObservation.objects.exclude(scope=self.scope)
        assert not orphans.exists()

    def _family(self, key: RecordKey) -> Sequence[ObservationalRecord]:
        records = ObservationalRecord.objects.filter(scope=key.scope, thread_id=key.thread_id)
        if key.thread_id is None:
            records = records.filter(resource_id=key.resource_id)
        return list(records.order_by("generation_count"))

    def _check_generations(self, key: RecordKey) -> ObservationalRecord | None:
        """There is one live generation, the newest; numbers and cursor only grow."""
        family = self._family(key)
        subject = key.subject_id
        if not family:
            self.seen.pop(subject, None)
            return None
        numbers = [record.generation_count for record in family]
        assert numbers == list(range(numbers[0], numbers[0] + len(family)))
        live = [record for record in family if record.superseded_by_id is None]
        assert live == family[-1:], "exactly one generation is live, the newest"
        for older, newer in itertools.pairwise(family):
            assert older.superseded_by_id == newer.pk
        (head,) = live
        number, cursor = self.seen.get(subject, (0, None))
        assert head.generation_count >= number
        assert cursor is None or (head.last_observed_at and head.last_observed_at >= cursor)
        self.seen[subject] = (head.generation_count, head.last_observed_at)
        return head

    def _check_closed_generations(self) -> None:
        """A closed generation never changes, and nothing is left to do for it."""
        for record in ObservationalRecord.objects.exclude(superseded_by=None):
            assert record.lease_token is None and record.reflection_token is None
            assert record.due_at is None and not record.buffered_reflection
            assert not record.buffered_chunks
            text = self.closed.setdefault(record.pk, record.active_observations)
            assert record.active_observations == text

    def _check_record(self, record: ObservationalRecord) -> None:
        counter = tokens.get_token_counter()
        text = record.active_observations
        assert record.observation_token_count == counter.text(text)
        for pinned in record.pinned:
            assert pinned in text, "what a person pinned is kept"
        if self.scope == "thread":
            thread = Thread.objects.get(pk=record.thread_id)
            assert record.resource_id == thread.resource_id

    def _check_messages(self, key: RecordKey, record: ObservationalRecord) -> None:
        """Each message is observed once, and what is observed is in the log once."""
        log_facts = find_facts(record.active_observations)
        chunks = record.buffered_chunks
        for chunk in chunks:
            log_facts += find_facts(chunk.observations)
        for (number, version), count in log_facts.items():
            allowed = 1 if self.scope == "thread" else 1 + self.copies[number]
            assert count <= allowed or number in self.moved, f"fact-{number}-{version} twice"
        tracking.track_missing(key)
        states = self.read_states(key)
        for message_id, chunk_of_message in states.items():
            known = self.facts[message_id]
            is_lost = known & (self.removed | self.model.unreliable)
            if chunk_of_message is not None:
                assert known & set(log_facts) or is_lost, f"{message_id} is lost"
            elif self.number_of(message_id) not in self.moved:
                newest = max(known)
                allowed = self.copies[newest[0]] if self.scope == "resource" else 0
                assert log_facts[newest] <= allowed, f"{message_id} is observed and pending"
        self._check_tokens(key, record, states)

    def _check_tokens(
        self,
        key: RecordKey,
        record: ObservationalRecord,
        states: dict[str, ObservationChunk | None],
    ) -> None:
        """The stored counts are those of the messages that are left."""
        pending = tracking.count_pending(key)
        unobserved = {
            message_id
            for message_id, chunk in states.items()
            if chunk is None or chunk.activated_at is None
        }
        listed = tracking.list_unobserved(key)
        assert [m.id for m in listed] == [m.id for m in sorted(listed, key=lambda m: m.created_at)]
        assert {message.id for message in listed} == unobserved
        assert pending.messages == len(unobserved) and pending.uncounted == 0
        without_chunk = [m for m in listed if states[m.id] is None]
        lists = len({m.thread_id for m in without_chunk}) or bool(listed)
        total = sum(tracking.count_tokens(listed)) + tokens.TOKENS_PER_LIST * lists
        assert pending.tokens == total
        in_chunks = [
            sum(tracking.count_tokens([m for m in listed if states[m.id] == chunk]))
            for chunk in record.buffered_chunks
        ]
        assert list(pending.chunk_tokens) == [n and n + tokens.TOKENS_PER_LIST for n in in_chunks]

    def read_states(self, key: RecordKey) -> dict[str, ObservationChunk | None]:
        """Return the chunk of each message, or None while it is pending.

        Every message of the thread or resource has a state: none is forgotten.
        """
        messages = Message.objects.filter(resource_id=key.resource_id)
        if key.thread_id is not None:
            messages = messages.filter(thread_id=key.thread_id)
        ids = set(messages.values_list("pk", flat=True))
        rows = MessageObservation.objects.filter(scope=self.scope, message_id__in=ids)
        states = {row.message_id: row.chunk for row in rows.select_related("chunk")}
        assert set(states) == ids, "a message is not tracked"
        family = {record.pk for record in self._family(key)}
        for chunk in filter(None, states.values()):
            assert chunk.record_id in family, "observed by somebody else"
        return states
