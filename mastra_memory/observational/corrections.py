"""Corrections by people: edit, pin or delete an observation, and return to a generation.

Each correction opens a generation with the person as its origin. Observations that a worker
appends meanwhile are kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from mastra_memory.db import routing
from mastra_memory.exceptions import ClaimLost, InvalidInput, Issue, StaleData
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import events, generations, log, log_edits, tracing
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.log import LogItem
from mastra_memory.observational.log_edits import Address
from mastra_memory.observational.tracing import ObservationSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationEntry:
    """One observation of the current log."""

    id: str
    """Its generation and line, such as `3.12`."""
    item: LogItem
    is_pinned: bool
    message_ids: tuple[str, ...]
    """The messages that it was made of."""
    is_exact: bool
    """False if the text was changed since, so that the messages were found by its words."""


def list_entries(key: RecordKey) -> list[ObservationEntry]:
    """Return the observations of the current log in order."""
    record = generations.find_live(key)
    if record is None:
        return []
    items = log.get_items(record.active_observations)
    sources = tracing.find_sources(record, items)
    return [_build_entry(record, item, sources) for item in items]


def get_entry(key: RecordKey, observation: str) -> ObservationEntry:
    """Return one observation of the current log.

    Raises:
        InvalidInput: `observation` is not the id of an observation.
        StaleData: There is no such observation anymore.
    """
    address = Address.parse(observation)
    record = generations.find_live(key)
    if record is not None and record.generation_count == address.generation:
        items = log.get_items(record.active_observations)
        for item in items:
            if item.line == address.line:
                return _build_entry(record, item, tracing.find_sources(record, [item]))
    raise StaleData(log_edits.STALE_MESSAGE)


def _build_entry(
    record: ObservationalRecord, item: LogItem, sources: Mapping[int, ObservationSource]
) -> ObservationEntry:
    source = sources[item.line]
    return ObservationEntry(
        id=str(Address(record.generation_count, item.line)),
        item=item,
        is_pinned=item.text in record.pinned,
        message_ids=source.message_ids,
        is_exact=source.is_exact,
    )


def edit(key: RecordKey, observation: str, text: str, *, user_name: str) -> ObservationalRecord:
    """Replace the text of an observation. If it is pinned, the new text is pinned.

    Raises:
        InvalidInput: The id or the text is invalid.
        StaleData: There is no such observation anymore.
    """
    record, line = _find(key, observation)
    read_log = record.active_observations
    old = log_edits.get_item(read_log, line).text
    new_log = log_edits.edit_item(read_log, line, text)
    new = log_edits.get_item(new_log, line).text
    pinned = [new if item == old else item for item in record.pinned]
    return _open(record, new_log, pinned, user_name, action="edit", before=old, after=new)


def pin(key: RecordKey, observation: str, *, pinned: bool, user_name: str) -> ObservationalRecord:
    """Pin an observation, so that reflections keep it, or unpin it.

    Nothing changes if it is pinned or unpinned already.

    Raises:
        InvalidInput: `observation` is not the id of an observation.
        StaleData: There is no such observation anymore.
    """
    record, line = _find(key, observation)
    text = log_edits.get_item(record.active_observations, line).text
    if (text in record.pinned) == pinned:
        return record
    others = [item for item in record.pinned if item != text]
    return _open(
        record,
        record.active_observations,
        [*others, text] if pinned else others,
        user_name,
        action="pin" if pinned else "unpin",
        before=text,
        after=text,
    )


def delete(key: RecordKey, observation: str, *, user_name: str) -> ObservationalRecord:
    """Delete an observation and those nested below it.

    Raises:
        InvalidInput: `observation` is not the id of an observation.
        StaleData: There is no such observation anymore.
    """
    record, line = _find(key, observation)
    read_log = record.active_observations
    old = log_edits.get_item(read_log, line).text
    new_log = log_edits.delete_item(read_log, line)
    pinned = _keep_present(record.pinned, new_log)
    return _open(record, new_log, pinned, user_name, action="delete", before=old, after="")


def restore(key: RecordKey, generation: int, *, user_name: str) -> ObservationalRecord:
    """Return to the log of an earlier generation, with all that was observed since at its end.

    Raises:
        InvalidInput: There is no such generation, or it is the current one.
    """
    earlier = _list_generations(key).filter(generation_count=generation).first()
    # The log must not change while the later observations are read: one that is appended meanwhile
    # would be missing, or it would be there twice.
    with routing.atomic():
        try:
            record = generations.lock_live(key)
        except ClaimLost:
            record = None
        if record is None or earlier is None or earlier.pk == record.pk:
            reason = "must be the number of an earlier generation"
            raise InvalidInput(f"generation {reason}", [Issue("generation", reason)])
        return _restore(key, record, earlier, user_name)


def _restore(
    key: RecordKey, record: ObservationalRecord, earlier: ObservationalRecord, user_name: str
) -> ObservationalRecord:
    """Return the generation that replaces a locked record by an earlier one."""
    generation = earlier.generation_count
    text: str = earlier.active_observations
    for chunk in tracing.list_activated_chunks(key, after_generation=generation):
        text = log.append_observations(text, chunk.observations, chunk.last_observed_at)
    return _open(
        record,
        text,
        _keep_present([*earlier.pinned, *record.pinned], text),
        user_name,
        action="restore",
        before=str(record.generation_count),
        after=str(generation),
    )


def _list_generations(key: RecordKey) -> QuerySet[ObservationalRecord]:
    return generations.list_records(key.scope, thread_id=key.thread_id, resource_id=key.resource_id)


def _keep_present(pinned: Iterable[str], text: str) -> list[str]:
    """Return the pinned texts that are still in the log, each once."""
    present = {item.text for item in log.get_items(text)}
    return [item for item in dict.fromkeys(pinned) if item in present]


def _find(key: RecordKey, observation: str) -> tuple[ObservationalRecord, int]:
    """Return the live record and the line of an observation in its log.

    Raises:
        InvalidInput: `observation` is not the id of an observation.
        StaleData: There is a newer generation, or none at all.
    """
    address = Address.parse(observation)
    record = generations.find_live(key)
    if record is None or record.generation_count != address.generation:
        raise StaleData(log_edits.STALE_MESSAGE)
    return record, address.line


def _open(
    record: ObservationalRecord,
    new_log: str,
    pinned: Sequence[str],
    user_name: str,
    *,
    action: str,
    before: str,
    after: str,
) -> ObservationalRecord:
    """Open a generation with the corrected log, and note who did what in the timeline.

    Raises:
        StaleData: The log was condensed meanwhile.
    """
    with routing.atomic():
        try:
            following = generations.open_generation(
                None,
                record,
                new_log,
                origin=ObservationalRecord.Origin.EDIT,
                read_log=record.active_observations,
                user_name=user_name,
                pinned=pinned,
            )
        except ClaimLost:
            raise StaleData(log_edits.STALE_MESSAGE) from None
        events.record_event(
            following,
            "edit",
            user_name=user_name,
            data={
                "action": action,
                "before": before,
                "after": after,
                "generationCount": following.generation_count,
            },
        )
    return following
