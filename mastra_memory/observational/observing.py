"""Observe the unobserved messages of a thread or a resource at once."""

from collections.abc import Iterator, Sequence

from mastra_memory.db import leases
from mastra_memory.models.fields import new_id
from mastra_memory.observational import (
    batches,
    claims,
    commits,
    events,
    generations,
    observer_results,
    selection,
    timeline,
    tracking,
)
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.commits import Commit
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.observer_results import MessagesByThread, PreparedObservation
from mastra_memory.observational.timeline import RunningEvent
from mastra_memory.observational.work import Work
from mastra_memory.types import StoredMessage

REST_RATIO = 1.5
"""The last batch may be this much larger, so that no call is spent on a few messages."""


def observe_pending(job: Work, claim: Claim, *, everything: bool = False) -> Iterator[int]:
    """Observe the messages that are in no chunk, and yield the number of each batch.

    A large backlog is observed in batches. Each is committed before the next one is read, so that
    the Observer knows what it wrote, and an interruption loses only one call.

    Args:
        job: The thread or resource, and the options of the agent.
        claim: The claim to observe.
        everything: Whether all threads of a resource are observed, or only the largest.

    Raises:
        ClaimLost: Another worker took over. What was committed stays.
        ProviderUnavailable: The model did not answer.
        ProviderRefused: The model refused the request, or its answer was not usable.
    """
    if (thread_id := job.key.thread_id) is not None:
        pending = tracking.count_pending(job.key).unbuffered_tokens
        yield from _observe_thread(job, claim, thread_id, pending)
    else:
        yield from _observe_resource(job, claim, everything=everything)


def _observe_thread(job: Work, claim: Claim, thread_id: str, tokens: int) -> Iterator[int]:
    """Observe the messages of one thread, `tokens` in all, in batches if there are many."""
    limit = job.batch_tokens
    is_last = False
    while not is_last:
        is_last = tokens <= limit * REST_RATIO
        messages = _list_messages(job.key, thread_id, None if is_last else limit)
        if not messages:
            break
        _observe_batch(job, claim, {thread_id: messages})
        yield len(messages)
        tokens -= sum(tracking.count_tokens(messages))


def _list_messages(key: RecordKey, thread_id: str, limit_tokens: int | None) -> list[StoredMessage]:
    """Return messages for one call, without a tool call whose outcome will still come."""
    in_thread = None if key.thread_id is not None else thread_id
    found = tracking.list_unobserved(
        key, thread_id=in_thread, limit_tokens=limit_tokens, exclude_buffered=True
    )
    messages = selection.drop_pending_call(found)
    # In the middle of a backlog, a call without an outcome has been abandoned.
    return messages if messages or limit_tokens is None else found


def _observe_resource(job: Work, claim: Claim, *, everything: bool) -> Iterator[int]:
    """Observe the threads with most messages. Small ones share a call of the Observer."""
    settings = job.get_settings(generations.find_live_state(job.key))
    threads = tracking.list_threads_with_unobserved(job.key.resource_id)
    total = sum(thread.tokens for thread in threads)
    threshold = total if everything else min(total, settings.message_tokens)
    selected = batches.select_threads(threads, threshold)
    for batch in batches.make_batches(selected, settings.max_tokens_per_batch):
        if len(batch) == 1:
            yield from _observe_thread(job, claim, batch[0].thread_id, batch[0].tokens)
            continue
        messages = {
            thread.thread_id: found
            for thread in batch
            if (found := _list_messages(job.key, thread.thread_id, None))
        }
        if messages:
            _observe_batch(job, claim, messages)
            yield sum(map(len, messages.values()))


def _observe_batch(job: Work, claim: Claim, messages: MessagesByThread) -> None:
    """Ask the Observer about these messages with one call, and commit what it wrote."""
    record = generations.get_live(job.key)
    settings = job.get_settings(record)
    thread_ids = list(messages)
    read_tokens = sum(sum(tracking.count_tokens(items)) for items in messages.values())
    with timeline.record_operation(
        record,
        "observation",
        cycle_id=new_id(),
        thread_id=thread_ids[0] if len(thread_ids) == 1 else None,
        user_name=job.user_name,
        data={
            "operationType": "observation",
            "tokensToObserve": read_tokens,
            "threadIds": thread_ids,
            "config": timeline.describe_config(settings),
        },
    ) as event:
        with leases.keep_renewing(lambda: claims.renew(claim)):
            results = observer_results.ask_observer(job, record, settings, messages)
        commits_made = [_commit(job, claim, prepared, event) for prepared in results]
        event.data = _describe(commits_made, results, read_tokens)


def _commit(job: Work, claim: Claim, prepared: PreparedObservation, event: RunningEvent) -> Commit:
    event.usage = event.usage + prepared.observation.usage
    thread_id = prepared.messages[0].thread_id
    commit = commits.commit_observation(
        claim,
        prepared.text,
        prepared.messages,
        hints=prepared.hints,
        cycle_id=f"{event.cycle_id}:{thread_id}",
        group_id=prepared.group_id,
        title=prepared.title,
        merge_extracted=prepared.merge_extracted,
    )
    finish_commit(job, commit, prepared)
    return commit


def finish_commit(job: Work, commit: Commit, prepared: PreparedObservation) -> None:
    """Store what lies outside of the record, and note a changed title in the timeline."""
    observer_results.save_managed_memory(job, commit.record, prepared)
    if commit.title_change is not None:
        old, new = commit.title_change
        events.record_event(
            commit.record,
            "title",
            cycle_id=commit.chunk.cycle_id,
            thread_id=commit.chunk.thread_id,
            data={"threadId": commit.chunk.thread_id, "oldTitle": old, "newTitle": new},
        )


def _describe(
    made: Sequence[Commit], results: Sequence[PreparedObservation], read_tokens: int
) -> dict[str, object]:
    """Return what Mastra's end marker contains."""
    texts = [prepared.text for prepared in results if prepared.text]
    return {
        "tokensObserved": read_tokens,
        "observationTokens": sum(commit.chunk.token_count for commit in made),
        "messagesObserved": sum(len(commit.chunk.message_ids) for commit in made),
        "observations": "\n\n".join(texts),
    }
