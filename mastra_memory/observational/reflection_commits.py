"""Store reflections: at once, prepared in advance, and when a prepared one is activated."""

from mastra_memory.content import tokens
from mastra_memory.db import json_text, routing, times
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import LogChanged
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import generations, log, thread_metadata
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.thread_metadata import Hints, LockedThread, MergeExtracted


@retry_conflicts
def commit_reflection(
    claim: Claim,
    read_log: str,
    text: str,
    *,
    hints: Hints | None = None,
    thread_id: str | None = None,
    merge_extracted: MergeExtracted | None = None,
    unproductive_tokens: int | None = None,
) -> ObservationalRecord:
    """Open a generation in which the reflection replaces the log that the Reflector read.

    Observations that were appended meanwhile are kept.

    Args:
        claim: The claim on reflecting.
        read_log: The log that the Reflector read.
        text: The reflection.
        hints: Hints for the thread's metadata. Those that are missing are kept.
        thread_id: The thread that gets the hints; the thread of the record by default.
        merge_extracted: Adds extracted values to the thread's metadata.
        unproductive_tokens: The tokens of the new log if the reflection did not shorten it enough.

    Raises:
        LogChanged: The log does not start with `read_log` any more.
        ClaimLost: Another worker has taken over, or the record was deleted.
    """
    text = json_text.clean_text(text)
    if not text.strip():
        raise ValueError("A reflection must not be empty")

    def update_thread(thread: LockedThread) -> None:
        metadata = thread_metadata.set_hints(
            thread.metadata, hints or Hints(), remove_missing=False
        )
        metadata = merge_extracted(metadata) if merge_extracted else metadata
        thread_metadata.save_metadata(thread, metadata)

    return generations.open_generation(
        claim,
        generations.get_live(claim.key),
        text,
        origin=ObservationalRecord.Origin.REFLECTION,
        read_log=read_log,
        unproductive_tokens=unproductive_tokens,
        thread_id=(thread_id or claim.key.thread_id) if hints or merge_extracted else None,
        update_thread=update_thread,
    )


@retry_conflicts
def commit_buffered_reflection(
    claim: Claim, read_lines: str, line_count: int, text: str, *, input_tokens: int
) -> ObservationalRecord:
    """Store a reflection of the first lines of the log, to be activated later.

    Args:
        claim: The claim on reflecting.
        read_lines: The lines that the Reflector read; see `log.take_lines`.
        line_count: How many lines these are.
        text: The reflection.
        input_tokens: The tokens of the lines.

    Raises:
        LogChanged: The log does not begin with these lines any more.
        ClaimLost: Another worker has taken over, or the record was deleted.
    """
    text = json_text.clean_text(text).strip()
    if not text:
        raise ValueError("A reflection must not be empty")
    count = tokens.get_token_counter().text(text)
    with routing.atomic():
        record = generations.lock_live(claim.key, claim)
        if log.take_lines(record.active_observations, line_count) != read_lines:
            raise LogChanged
        record.buffered_reflection = text
        record.buffered_reflection_tokens = count
        record.buffered_reflection_input_tokens = input_tokens
        record.reflected_observation_line_count = line_count
        record.updated_at = times.now()
        record.save(update_fields=[*generations.BUFFERED_REFLECTION_FIELDS, "updated_at"])
    return record


@retry_conflicts
def activate_reflection(
    key: RecordKey, *, claim: Claim | None = None, unproductive_at: int | None = None
) -> ObservationalRecord | None:
    """Open a generation with the reflection that was prepared in advance.

    The lines that it does not cover are kept.

    Args:
        key: The thread or resource.
        claim: The claim on reflecting, if the caller has one.
        unproductive_at: The reflection is marked as unproductive if the new log has this many
            tokens or more.

    Returns:
        The new generation, or None if there is no buffered reflection.

    Raises:
        ClaimLost: Another worker has taken over, or the record was deleted.
    """

    def compose(record: ObservationalRecord) -> tuple[str, int]:
        lines = record.reflected_observation_line_count or 0
        reflection = record.buffered_reflection
        composed = log.replace_lines(record.active_observations, lines, reflection)
        return composed, tokens.get_token_counter().text(composed)

    attempts = 0
    while True:
        attempts += 1
        live = generations.get_live(key)
        if not live.buffered_reflection:
            return None
        new_log = compose(live)
        with routing.atomic():
            locked = generations.lock_live(key, claim)
            is_same = locked.buffered_reflection == live.buffered_reflection
            if not (is_same and generations.is_unchanged(live, locked)):
                if attempts < generations.MAX_UNLOCKED_ATTEMPTS:
                    continue
                if not locked.buffered_reflection:
                    return None
                new_log = compose(locked)
            unproductive = unproductive_at is not None and new_log[1] >= unproductive_at
            return generations.supersede(
                locked,
                *new_log,
                origin=ObservationalRecord.Origin.REFLECTION,
                pinned=locked.pinned,
                unproductive_tokens=new_log[1] if unproductive else None,
            )


@retry_conflicts
def mark_unproductive(claim: Claim, token_count: int) -> None:
    """Remember at which size of the log a reflection failed, so that it is not tried again."""
    with routing.atomic():
        record = generations.lock_live(claim.key, claim)
        record.unproductive_reflection_tokens = token_count
        record.save(update_fields=["unproductive_reflection_tokens"])
