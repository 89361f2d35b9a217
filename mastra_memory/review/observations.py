"""Read observational memory for reviewers: logs line by line, batches, events and generations."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum

from mastra_memory import conf
from mastra_memory.db import times
from mastra_memory.exceptions import AgentNotFound, MemoryNotConfigured
from mastra_memory.models import (
    Message,
    MessageObservation,
    ObservationalRecord,
    ObservationChunk,
    ObservationEvent,
    Scope,
    Thread,
)
from mastra_memory.observational import log, status, tracing, tracking
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.log import LogItem
from mastra_memory.observational.status import ObservationStatus

MAX_LOG_CHARACTERS = 500_000
"""Only the beginning of a longer log is read line by line."""
_OPENING = re.compile(r'^<thread id="([^"\n]*)">$')
_CLOSING = "</thread>"
_GROUP_TAG = re.compile(r"^</?observation-group\b[^>\n]*>[ \t]*$")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log that says something: an observation, or other text."""

    number: int
    """The index of the line in the log."""
    text: str
    """The observation without bullet, mark and time, or the whole line of other text."""
    item: LogItem | None
    """The observation; None for other text."""
    day: date | None
    thread_id: str | None
    """The thread of the section that the line is in, in the log of a resource."""


def read_log(text: str, hidden: Collection[str] = ()) -> list[LogLine]:
    """Return the lines of a log in order, without headings, boundaries and tags.

    Args:
        text: The log. Only its first `MAX_LOG_CHARACTERS` are read.
        hidden: Ids of threads whose sections are left out.
    """
    beginning = text[:MAX_LOG_CHARACTERS]
    items = {item.line: item for item in log.get_items(beginning)}
    lines: list[LogLine] = []
    day: date | None = None
    thread_id: str | None = None
    for number, line in enumerate(beginning.split("\n")):
        if opening := _OPENING.match(line):
            day, thread_id = None, log.read_thread_id(opening[1])
        elif line == _CLOSING or log.BOUNDARY_LINE.match(line):
            day, thread_id = None, None
        elif heading := log.parse_heading(line):
            day = heading
        elif not line.strip() or _GROUP_TAG.match(line) or thread_id in hidden:
            continue
        else:
            item = items.get(number)
            shown = item.text if item else line.strip()
            lines.append(LogLine(number, shown, item, day, thread_id))
    return lines


def list_threads(record: ObservationalRecord, texts: Iterable[str] = ()) -> set[str]:
    """Return the ids of the threads in the batches of a record, in its log and in other texts."""
    rows = list_batches(record).order_by().values_list("thread_id", flat=True)
    found = {pk for pk in rows.distinct() if pk is not None}
    for text in (record.active_observations, record.buffered_reflection, *texts):
        found |= _list_thread_tags(text)
    return found


def _list_thread_tags(text: str) -> set[str]:
    openings = (_OPENING.match(line) for line in text.split("\n"))
    thread_ids = (log.read_thread_id(opening[1]) for opening in openings if opening)
    return {thread_id for thread_id in thread_ids if thread_id}


def remove_threads(text: str, hidden: Collection[str]) -> str:
    """Return a log without the sections of these threads."""
    if not hidden:
        return text
    kept: list[str] = []
    skipping = False
    for line in text.split("\n"):
        if opening := _OPENING.match(line):
            skipping = log.read_thread_id(opening[1]) in hidden
        if not skipping:
            kept.append(line)
        if line == _CLOSING:
            skipping = False
    return "\n".join(kept)


def find_sources(
    record: ObservationalRecord, lines: Sequence[LogLine]
) -> Mapping[int, tracing.ObservationSource]:
    """Return the messages behind the observations of these lines, by the number of the line."""
    return tracing.find_sources(record, [line.item for line in lines if line.item])


def list_generations(record: ObservationalRecord) -> QuerySet[ObservationalRecord]:
    """Return all generations of a record, newest first."""
    rows = ObservationalRecord.objects.all()
    if record.scope == Scope.THREAD:
        rows = rows.about_thread(str(record.thread_id))
    else:
        rows = rows.about_resource(record.resource_id)
    return rows.newest_first()


def list_batches(record: ObservationalRecord) -> QuerySet[ObservationChunk]:
    """Return the results of the Observer in all generations, newest first.

    Each has the number of its generation as `generation`.
    """
    chunks = ObservationChunk.objects.filter(record__in=list_generations(record).values("pk"))
    return chunks.annotate(generation=F("record__generation_count")).order_by(
        "-last_observed_at", "-created_at", "-position"
    )


def find_batch_of_message(record: ObservationalRecord, message_id: str) -> str | None:
    """Return the id of the batch that a message is in, or None."""
    rows = MessageObservation.objects.filter(message_id=message_id, scope=record.scope)
    found: str | None = rows.values_list("chunk_id", flat=True).first()
    return found


def list_events(record: ObservationalRecord) -> QuerySet[ObservationEvent]:
    """Return the events of all generations, newest first."""
    events = ObservationEvent.objects.filter(record__in=list_generations(record).values("pk"))
    return events.order_by("-started_at", "-id")


def sum_events(record: ObservationalRecord) -> dict[str, Any]:
    """Return the tokens and the cost of all events, and how many failed.

    The cost is None if no event has a known price.
    """
    sums = list_events(record).aggregate(
        tokens_in=Sum("tokens_in"),
        tokens_out=Sum("tokens_out"),
        cost=Sum("cost"),
        failed=Count("pk", filter=Q(state=ObservationEvent.State.FAILED)),
        events=Count("pk"),
    )
    return {name: value or 0 for name, value in sums.items()} | {"cost": sums["cost"]}


def find_status(record: ObservationalRecord) -> ObservationStatus | None:
    """Return the status of a record with the options of its agent.

    None means that the agent does not observe this kind of record, or does not exist any more.
    """
    try:
        options = conf.get_agent_options(record.agent_id).observational_memory
    except (AgentNotFound, MemoryNotConfigured):
        return None
    if options is None or options.scope != record.scope:
        return None
    return status.read_status(RecordKey.of_record(record), options)


@dataclass(frozen=True, slots=True)
class MessageState:
    """How far a message has come in one record."""

    record_id: str
    scope: str
    state: str
    """`observed`, `buffered` or `raw`."""
    chunk_id: str | None


def list_message_states(
    thread: Thread, messages: Sequence[Message]
) -> dict[str, list[MessageState]]:
    """Return the states of these messages of a thread, one for each live record.

    A message without a row is observed if it is not later than the cursor of the record.
    Messages that are never observed have no states.
    """
    records = {record.scope: record for record in _list_live_records(thread)}
    ids = [message.pk for message in messages if _is_observable(message)]
    if not records or not ids:
        return {}
    rows = MessageObservation.objects.filter(
        message_id__in=ids, scope__in=list(records)
    ).values_list("message_id", "scope", "chunk_id", "chunk__activated_at")
    tracked = {(message_id, scope): (chunk, moment) for message_id, scope, chunk, moment in rows}
    return {
        message.pk: [
            _build_state(thread, message, record, tracked.get((message.pk, scope)))
            for scope, record in records.items()
        ]
        for message in messages
        if _is_observable(message)
    }


def _list_live_records(thread: Thread) -> list[ObservationalRecord]:
    of_thread = Q(scope=Scope.THREAD, thread_id=thread.pk)
    of_resource = Q(scope=Scope.RESOURCE, resource_id=thread.resource_id)
    rows = ObservationalRecord.objects.live().filter(of_thread | of_resource)
    return list(rows.only("id", "scope", "last_observed_at", "observed_message_ids"))


def _is_observable(message: Message) -> bool:
    return message.signal != tracking.STATE_SIGNAL


def _build_state(
    thread: Thread,
    message: Message,
    record: ObservationalRecord,
    row: tuple[str | None, datetime | None] | None,
) -> MessageState:
    chunk_id, activated_at = row or (None, None)
    if row is None:
        is_observed = _was_observed_before(thread, message, record)
    else:
        is_observed = activated_at is not None
    state = "observed" if is_observed else "buffered" if chunk_id else "raw"
    return MessageState(record.pk, record.scope, state, chunk_id)


def _was_observed_before(thread: Thread, message: Message, record: ObservationalRecord) -> bool:
    """Return whether a message without a row was observed before it was imported or cloned."""
    if message.pk in (record.observed_message_ids or ()):
        return True
    if record.scope == Scope.THREAD:
        cursor = record.last_observed_at
    else:
        cursor = _get_thread_cursor(thread)
    return cursor is not None and message.created_at <= cursor


def _get_thread_cursor(thread: Thread) -> datetime | None:
    """Return the time up to which the thread is observed in resource scope."""
    value: Any = thread.metadata
    for name in ("mastra", "om", "lastObservedAt"):
        value = value.get(name) if isinstance(value, dict) else None
    try:
        return times.parse_time(value) if isinstance(value, str) else None
    except ValueError:
        return None


def iterate_visible_texts(
    record: ObservationalRecord, hidden: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of everything that a generation holds.

    The kinds are `observations`, `reflection` and, for a buffered chunk, its position.
    """
    yield "observations", remove_threads(record.active_observations, hidden)
    if record.buffered_reflection:
        yield "reflection", remove_threads(record.buffered_reflection, hidden)
    chunks = ObservationChunk.objects.buffered().filter(record=record).order_by("position")
    for chunk in chunks.only("observations", "position", "thread_id").iterator(chunk_size=20):
        if chunk.thread_id not in hidden:
            yield str(chunk.position), remove_threads(chunk.observations, hidden)
