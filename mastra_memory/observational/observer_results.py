"""Ask the Observer about stored messages, and prepare its answer for storage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mastra_memory.models import ObservationalRecord, Scope, Thread
from mastra_memory.observational import (
    extractors,
    groups,
    log,
    managed_memory,
    observer,
    work,
)
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.observational.managed_memory import ManagedMemory
from mastra_memory.observational.observer import Observation, ThreadMessages
from mastra_memory.observational.thread_metadata import Hints, MergeExtracted
from mastra_memory.observational.work import Work
from mastra_memory.types import StoredMessage

MessagesByThread = Mapping[str, Sequence[StoredMessage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedObservation:
    """What to store for the messages of one thread."""

    messages: Sequence[StoredMessage]
    text: str
    """The observations, wrapped in a group and the section of the thread where they have one."""
    group_id: str
    observation: Observation
    hints: Hints
    title: str
    merge_extracted: MergeExtracted | None


def ask_observer(
    job: Work,
    record: ObservationalRecord,
    settings: ObservationSettings,
    messages: MessagesByThread,
    *,
    is_buffering: bool = False,
) -> list[PreparedObservation]:
    """Return what the Observer wrote about each thread. It takes seconds, so lock nothing.

    Raises:
        ProviderUnavailable: The model did not answer.
        ProviderRefused: The model refused the request, or its answer was not usable.
    """
    threads = _read_threads(messages, settings)
    memory = _read_managed_memory(job, record)
    timezone = work.get_timezone(record)
    if record.scope == Scope.THREAD:
        (thread,) = threads
        observations = {
            thread.thread_id: observer.observe_messages(
                thread.messages,
                settings=settings,
                log=record.active_observations,
                buffered=[chunk.observations for chunk in record.buffered_chunks],
                hints=thread.hints,
                title=thread.title,
                extracted=thread.extracted,
                working_memory=memory,
                timezone=timezone,
                thread_id=thread.thread_id,
                resource_id=record.resource_id,
                is_buffering=is_buffering,
            )
        }
    else:
        observations = observer.observe_threads(
            threads,
            settings=settings,
            log=record.active_observations,
            working_memory=memory,
            timezone=timezone,
            resource_id=record.resource_id,
        )
    return [
        prepare(record, settings, messages[thread.thread_id], observations[thread.thread_id])
        for thread in threads
    ]


def _read_threads(
    messages: MessagesByThread, settings: ObservationSettings
) -> list[ThreadMessages]:
    """Return the messages with the titles and the Observer's metadata of their threads."""
    rows = Thread.objects.filter(pk__in=list(messages)).values_list("pk", "title", "metadata")
    stored = {thread_id: (title, metadata) for thread_id, title, metadata in rows}
    threads = []
    for thread_id, items in messages.items():
        title, metadata = stored.get(thread_id, ("", None))
        hints = get_observer_metadata(metadata)
        values = extractors.read_values(hints, settings.observation.extractors)
        threads.append(
            ThreadMessages(
                thread_id=thread_id, messages=items, hints=hints, title=title, extracted=values
            )
        )
    return threads


def get_observer_metadata(metadata: Any) -> Mapping[str, Any]:
    """Return the Observer's data in the metadata of a thread, `mastra.om`."""
    value = metadata
    for key in ("mastra", "om"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _read_managed_memory(job: Work, record: ObservationalRecord) -> ManagedMemory | None:
    if job.working_memory is None:
        return None
    return managed_memory.read_memory(
        job.working_memory, thread_id=record.thread_id, resource_id=record.resource_id
    )


def prepare(
    record: ObservationalRecord,
    settings: ObservationSettings,
    messages: Sequence[StoredMessage],
    observation: Observation,
) -> PreparedObservation:
    """Return what to store: the wrapped text, the hints, the title and extracted values."""
    text, group_id = observation.text, ""
    if settings.retrieval is not None and text:
        group_id = groups.make_group_id()
        text = groups.wrap_in_group(text, groups.format_range(messages), group_id=group_id)
    if record.scope == Scope.RESOURCE:
        text = log.wrap_in_thread(messages[0].thread_id, text)
    title = (observation.thread_title or "") if settings.thread_title else ""
    return PreparedObservation(
        messages=messages,
        text=text,
        group_id=group_id,
        observation=observation,
        hints=Hints(
            current_task=observation.current_task,
            suggested_response=observation.suggested_response,
            thread_title=title or None,
            extracted=observation.extracted,
            extraction_failures=observation.extraction_failures,
        ),
        title=title,
        merge_extracted=_build_merge(settings, observation.extracted),
    )


def _build_merge(settings: ObservationSettings, values: Mapping[str, Any]) -> MergeExtracted | None:
    if not values:
        return None

    def merge(metadata: dict[str, Any]) -> dict[str, Any]:
        return extractors.merge_values(metadata, settings.observation.extractors, values)

    return merge


def save_managed_memory(
    job: Work, record: ObservationalRecord, prepared: PreparedObservation
) -> None:
    """Store the working memory that the Observer wrote, if it keeps it."""
    content = prepared.observation.working_memory
    memory = _read_managed_memory(job, record) if content else None
    if content and memory is not None:
        managed_memory.save_memory(memory, content)
