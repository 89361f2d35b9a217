"""Trace an observation to the messages that it was made of, and a message to its observations."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mastra_memory.models import MessageObservation, ObservationalRecord, ObservationChunk
from mastra_memory.observational import generations, groups, log
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.log import LogItem

MIN_SHARED_WORDS = 2
"""A chunk is taken for the source of a changed observation if it shares this many words."""
MAX_COMPARED_CHARACTERS = 20_000
"""Only the words at the beginning of a longer chunk are compared."""
MAX_CHUNKS = 500
"""How many chunks are compared with the observations, the newest ones. A chunk covers thousands of
tokens, so these are the messages of years."""
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class ObservationSource:
    """The messages that an observation was made of."""

    message_ids: tuple[str, ...]
    is_exact: bool
    """False if a reflection or a person has changed the text, so that the source was found by the
    words that are left of it."""


@dataclass(frozen=True, slots=True)
class MessageTrace:
    """What was made of a message."""

    state: str
    """`observed`, `buffered`, `pending`, or empty if the message is not tracked."""
    chunk: ObservationChunk | None
    items: tuple[LogItem, ...] = ()
    """The observations of the current log that come from its chunk."""


def find_sources(
    record: ObservationalRecord, items: Sequence[LogItem]
) -> dict[int, ObservationSource]:
    """Return the sources of these observations by their line.

    An observation that stands in the log as the Observer wrote it has an exact source. Otherwise
    its group names a range of messages, or the most similar chunk is taken.
    """
    chunks = list_activated_chunks(RecordKey.of_record(record), limit=MAX_CHUNKS)
    by_line: dict[str, ObservationChunk] = {}
    for chunk in chunks:
        for line in chunk.observations.split("\n"):
            by_line.setdefault(line.strip(), chunk)
    by_group = {chunk.group_id: chunk for chunk in chunks if chunk.group_id}
    exact: dict[int, ObservationSource] = {}
    for item in items:
        source = by_line.get(item.raw.strip()) or by_group.get(item.group_id or "")
        if source is not None:
            exact[item.line] = ObservationSource(tuple(source.message_ids), True)
    changed = [item for item in items if item.line not in exact]
    return exact | _find_sources_by_words(record, changed, chunks)


def _find_sources_by_words(
    record: ObservationalRecord, items: Sequence[LogItem], chunks: Sequence[ObservationChunk]
) -> dict[int, ObservationSource]:
    """Return the sources of observations that do not stand in the log as they were written."""
    if not items:
        return {}
    by_word: dict[str, list[int]] = {}
    for index, chunk in enumerate(chunks):
        for word in _get_words(chunk.observations[:MAX_COMPARED_CHARACTERS]):
            by_word.setdefault(word, []).append(index)
    in_group = _list_ids_of_groups(record.active_observations)
    sources: dict[int, ObservationSource] = {}
    for item in items:
        similar = _find_similar(item, by_word)
        ids = (
            tuple(chunks[similar].message_ids)
            if similar is not None
            else in_group.get(item.group_id or "", ())
        )
        sources[item.line] = ObservationSource(ids, False)
    return sources


def _get_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _find_similar(item: LogItem, by_word: Mapping[str, Sequence[int]]) -> int | None:
    """Return the first of the chunks that share most words with the observation."""
    shared = Counter(index for word in _get_words(item.text) for index in by_word.get(word, ()))
    best = min(shared, key=lambda index: (-shared[index], index), default=None)
    return None if best is None or shared[best] < MIN_SHARED_WORDS else best


def _list_ids_of_groups(text: str) -> dict[str, tuple[str, ...]]:
    """Return the first and last messages of the range of each group, by its id."""
    return {
        group.id: tuple(dict.fromkeys(part for pair in group.segments for part in pair))
        for group in groups.parse_groups(text)
    }


def list_activated_chunks(
    key: RecordKey, *, after_generation: int | None = None, limit: int | None = None
) -> list[ObservationChunk]:
    """Return results of the Observer that became part of the log, oldest first.

    Args:
        key: The thread or resource.
        after_generation: Only those that were added to later generations.
        limit: Only this many, the newest ones.
    """
    records = generations.list_records(
        key.scope, thread_id=key.thread_id, resource_id=key.resource_id
    )
    if after_generation is not None:
        records = records.filter(generation_count__gt=after_generation)
    chunks = ObservationChunk.objects.activated().filter(record__in=records.values("pk"))
    newest_first = chunks.order_by("-activated_at", "-position")[:limit]
    return list(newest_first)[::-1]


def trace_message(key: RecordKey, message_id: str) -> MessageTrace:
    """Return how far a message has come, and the observations that were made of it.

    A chunk covers several messages, so its observations may come from the others.
    """
    row = (
        MessageObservation.objects.filter(message_id=message_id, scope=key.scope)
        .select_related("chunk")
        .first()
    )
    if row is None:
        return MessageTrace("", None)
    if row.chunk is None:
        return MessageTrace("pending", None)
    if row.chunk.activated_at is None:
        return MessageTrace("buffered", row.chunk)
    record = generations.find_live(key)
    text = record.active_observations if record else ""
    lines = {line.strip() for line in row.chunk.observations.split("\n")}
    items = [item for item in log.get_items(text) if item.raw.strip() in lines]
    return MessageTrace("observed", row.chunk, tuple(items))
