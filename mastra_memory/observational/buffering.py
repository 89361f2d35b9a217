"""Buffer: observe messages in advance. The chunk becomes visible when it is activated."""

from mastra_memory.db import leases
from mastra_memory.models.fields import new_id
from mastra_memory.observational import (
    claims,
    commits,
    generations,
    observer_results,
    observing,
    selection,
    timeline,
    tracking,
)
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.work import Work

MIN_CHUNK_RATIO = 0.5
"""A chunk is not worth a call if its messages are below this share of `buffer_tokens`."""


def buffer_pending(job: Work, claim: Claim) -> int:
    """Ask the Observer about the messages that are in no chunk, and store a chunk.

    If the Observer finds nothing to write, the messages stay pending.

    Args:
        job: The thread or resource, and the options of the agent.
        claim: The claim to buffer.

    Returns:
        The number of messages in the new chunk.

    Raises:
        ClaimLost: Another worker took over. The messages stay pending.
        ProviderUnavailable: The model did not answer.
        ProviderRefused: The model refused the request, or its answer was not usable.
    """
    record = generations.get_live(job.key)
    settings = job.get_settings(record)
    found = tracking.list_unobserved(job.key, exclude_buffered=True)
    messages = selection.drop_pending_call(found)
    read_tokens = sum(tracking.count_tokens(messages))
    minimum = (settings.buffer_tokens or 0) * MIN_CHUNK_RATIO
    if not messages or read_tokens < minimum:
        return 0
    thread_id = messages[0].thread_id
    pending = tracking.count_pending(job.key).tokens
    with timeline.record_operation(
        record,
        "buffering",
        cycle_id=new_id(),
        thread_id=thread_id,
        user_name=job.user_name,
        data={
            "operationType": "observation",
            "tokensToBuffer": read_tokens,
            "threadIds": [thread_id],
            "config": timeline.describe_config(settings),
        },
    ) as event:
        with leases.keep_renewing(lambda: claims.renew(claim)):
            (prepared,) = observer_results.ask_observer(
                job, record, settings, {thread_id: messages}, is_buffering=True
            )
        event.usage = prepared.observation.usage
        event.data = {"tokensBuffered": 0, "bufferedTokens": 0, "observations": ""}
        if not prepared.text:
            return 0
        commit = commits.commit_chunk(
            claim,
            prepared.text,
            messages,
            hints=prepared.hints,
            cycle_id=event.cycle_id,
            group_id=prepared.group_id,
            title=prepared.title,
            merge_extracted=prepared.merge_extracted,
            pending_tokens=pending,
        )
        observing.finish_commit(job, commit, prepared)
        event.data = {
            "tokensBuffered": read_tokens,
            "bufferedTokens": commit.chunk.token_count,
            "observations": prepared.text,
        }
    return len(commit.chunk.message_ids)
