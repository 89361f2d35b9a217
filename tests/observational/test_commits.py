"""Results of the Observer and the Reflector: what they change, and when they are discarded."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory import messages, threads
from mastra_memory.content import tokens
from mastra_memory.exceptions import ClaimLost, LogChanged
from mastra_memory.messages import updates
from mastra_memory.models import (
    MessageObservation,
    ObservationalRecord,
    ObservationChunk,
    ObservationEvent,
)
from mastra_memory.observational import (
    claims,
    commits,
    events,
    generations,
    reflection_commits,
    tracking,
)
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.thread_metadata import Hints
from mastra_memory.types import StoredThread
from tests.observational.committing import KEY, buffer, claim, expire, list_ids, live, save_tracked
from tests.support.factories import a_message, make_thread, moment, save, some_messages, track

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(db: None) -> StoredThread:
    """Return a thread `t` with tracked messages m0 … m9, one second apart."""
    made = make_thread("r", "t", metadata={"mastra": {"om": {"suggestedResponse": "old"}}})
    save_tracked(made, some_messages(made, 10))
    generations.get_or_create_live(KEY)
    return made


def read_hints() -> dict[str, Any]:
    """Return the Observer's metadata of the thread."""
    hints: dict[str, Any] = (threads.get_thread("t").metadata or {})["mastra"]["om"]
    return hints


def test_commit_observation__appends_and_moves_the_cursor(thread: StoredThread) -> None:
    held = claim()
    batch = tracking.list_unobserved(KEY)
    hints = Hints(current_task="Pack", extraction_failures=[{"slug": "x", "error": "y"}])
    commit = commits.commit_observation(
        held, "* A", batch[:4], hints=hints, cycle_id="c", group_id="g", title=" Trip "
    )
    assert commit.title_change == ("", "Trip")
    assert list_ids() == ["m4", "m5", "m6", "m7", "m8", "m9"]
    record = live()
    assert record.active_observations == "* A"
    assert record.observation_token_count == tokens.get_token_counter().text("* A")
    assert record.last_observed_at == moment(3)
    assert record.pending_message_tokens == tracking.count_pending(KEY).tokens
    assert record.total_tokens_observed == sum(tracking.count_tokens(batch[:4])) + 24
    chunk = ObservationChunk.objects.get()
    assert (chunk.cycle_id, chunk.group_id, chunk.range) == ("c", "g", "m0:m3")
    assert chunk.activated_at and chunk.message_ids == ["m0", "m1", "m2", "m3"]
    assert chunk.last_observed_at == moment(3.001) and chunk.thread_id == "t"
    assert read_hints() == {
        "currentTask": "Pack",
        "lastObservedMessageCursor": {"createdAt": "2024-01-01T00:00:03.000Z", "id": "m3"},
    }
    commits.commit_observation(held, "* B", batch[4:])
    boundary = "--- message boundary (2024-01-01T00:00:09.000Z) ---"
    assert live().active_observations == f"* A\n\n{boundary}\n\n* B"
    assert list_ids() == []
    assert not tracking.track_missing(KEY)


def test_commit_observation__blank_observations_count_as_observed(thread: StoredThread) -> None:
    commits.commit_observation(claim(), "* A", tracking.list_unobserved(KEY)[:2])
    commits.commit_observation(held_again(), " \n", tracking.list_unobserved(KEY))
    assert live().active_observations == "* A"
    assert list_ids() == [] and live().last_observed_at == moment(9)


def held_again() -> Claim:
    """Take over the claim on observing."""
    expire()
    return claim()


def test_commit_observation__keeps_the_cursor_and_finds_late_messages(
    thread: StoredThread,
) -> None:
    held = claim()
    commits.commit_observation(held, "* A", tracking.list_unobserved(KEY))
    save_tracked(thread, [a_message(thread, "late", at=2)])
    assert list_ids() == ["late"]
    commits.commit_observation(held, "* B", tracking.list_unobserved(KEY))
    assert live().last_observed_at == moment(9) and list_ids() == []
    assert read_hints()["lastObservedMessageCursor"]["id"] == "m9"


def test_commit_observation__a_worker_that_was_taken_over_is_refused(
    thread: StoredThread,
) -> None:
    late = claim()
    batch = tracking.list_unobserved(KEY)
    current = held_again()
    for function in (commits.commit_observation, commits.commit_chunk):
        with pytest.raises(ClaimLost):
            function(late, "* late", batch)
    commits.commit_observation(current, "* A", batch)
    assert live().active_observations == "* A"
    assert ObservationChunk.objects.count() == 1


def test_commit_observation__of_a_cleared_record_is_refused(thread: StoredThread) -> None:
    held = claim()
    batch = tracking.list_unobserved(KEY)
    generations.clear(KEY)
    with pytest.raises(ClaimLost):
        commits.commit_observation(held, "* A", batch)
    generations.get_or_create_live(KEY)
    with pytest.raises(ClaimLost):
        commits.commit_observation(held, "* A", batch)
    assert live().active_observations == ""


def edit(thread: StoredThread) -> None:
    """Edit m1."""
    updates.update_messages([{"id": "m1", "content": "changed"}])


def move(thread: StoredThread) -> None:
    """Move m1 to another thread."""
    save([a_message(make_thread("r", "other"), "m1")])


def delete(thread: StoredThread) -> None:
    """Delete m1."""
    messages.delete_messages(["m1"])


@pytest.mark.parametrize(("change", "pending"), [(edit, ["m1"]), (move, []), (delete, [])])
@pytest.mark.parametrize("commit", [commits.commit_observation, commits.commit_chunk])
def test_commit__messages_that_changed_meanwhile_are_left_out(
    thread: StoredThread, commit: Any, change: Callable[[StoredThread], None], pending: list[str]
) -> None:
    held = claim()
    batch = tracking.list_unobserved(KEY)[:3]
    change(thread)
    chunk = commit(held, "* A", batch).chunk
    assert chunk.message_ids == ["m0", "m2"]
    tracking.track_missing(KEY)
    assert list_ids(exclude_buffered=True)[: len(pending) + 1] == [*pending, "m3"]
    moved = MessageObservation.objects.filter(thread_id="other").values_list("chunk_id", flat=True)
    assert set(moved) <= {None}


def test_commit__without_any_message_left_is_discarded(thread: StoredThread) -> None:
    held = claim()
    batch = tracking.list_unobserved(KEY)
    messages.delete_messages([message.id for message in batch])
    with pytest.raises(ClaimLost, match="deleted"):
        commits.commit_observation(held, "* A", batch)
    assert not ObservationChunk.objects.exists() and live().active_observations == ""


def test_commit_observation__drops_chunks_of_the_same_messages(thread: StoredThread) -> None:
    first, second = buffer(2, "* A").chunk, buffer(3, "* B").chunk
    batch = tracking.list_unobserved(KEY)[:3]
    commit = commits.commit_observation(claim(), "* all", batch)
    assert set(commit.dropped_chunk_ids) == {first.id, second.id}
    assert list_ids(exclude_buffered=True)[:3] == ["m3", "m4", "m5"]
    assert [chunk.observations for chunk in live().chunks.all()] == []


def test_commit_chunk__is_buffered_and_still_unobserved(thread: StoredThread) -> None:
    commit = buffer(4, "* A", hints=Hints(current_task="x"), pending_tokens=70, title="Trip")
    assert commit.title_change == ("", "Trip")
    assert list_ids() == [f"m{number}" for number in range(10)]
    assert list_ids(exclude_buffered=True)[0] == "m4"
    record = live()
    assert [chunk.observations for chunk in record.buffered_chunks] == ["* A"]
    assert record.buffered_chunks[0].hints == {"currentTask": "x"}
    assert (record.last_buffered_at_tokens, record.last_buffered_at_time) == (70, moment(3.001))
    assert record.last_observed_at is None and record.active_observations == ""


def test_commit_chunk__is_stored_once(thread: StoredThread) -> None:
    held = claim("buffering")
    batch = tracking.list_unobserved(KEY)[:2]
    commits.commit_chunk(held, "* A", batch, cycle_id="c")
    with pytest.raises(ClaimLost):
        commits.commit_chunk(held, "* A", batch, cycle_id="d")
    assert ObservationChunk.objects.count() == 1


def test_activate_chunks__takes_a_prefix(thread: StoredThread) -> None:
    for text, hints in (("* A", Hints(current_task="a")), ("* B", None), ("* C", None)):
        buffer(2, text, hints=hints)
    activation = commits.activate_chunks(KEY, 2)
    assert activation is not None
    assert activation.message_ids == ["m0", "m1", "m2", "m3"]
    assert activation.tokens == sum(chunk.message_tokens for chunk in activation.chunks)
    record = live()
    assert record.active_observations == "* A\n\n* B"
    assert record.last_observed_at == moment(3)
    assert [chunk.observations for chunk in record.buffered_chunks] == ["* C"]
    assert list_ids() == ["m4", "m5", "m6", "m7", "m8", "m9"]
    assert read_hints()["currentTask"] == "a"
    assert read_hints()["suggestedResponse"] == "old"
    commits.activate_chunks(KEY, 9)
    boundary = "--- message boundary (2024-01-01T00:00:05.000Z) ---"
    assert live().active_observations == f"* A\n\n* B\n\n{boundary}\n\n* C"
    assert commits.activate_chunks(KEY, 1) is None


def test_open_generation__while_an_observation_is_in_flight(thread: StoredThread) -> None:
    observing = claim()
    batch = tracking.list_unobserved(KEY)
    commits.commit_observation(observing, "* A", batch[:2])
    reflecting = claim("reflecting")
    read_log = live().active_observations
    commits.commit_chunk(observing, "* buffered", batch[2:4])
    commits.commit_observation(observing, "* B", batch[4:6])
    claims.request_work(KEY, "agent")
    old = live()
    new = reflection_commits.commit_reflection(
        reflecting, read_log, "* short", hints=Hints(suggested_response="go on")
    )
    assert read_hints()["suggestedResponse"] == "go on"
    assert new.active_observations.startswith("* short\n\n--- message boundary (")
    assert new.active_observations.endswith("* B")
    assert (new.generation_count, new.origin_type) == (1, "reflection")
    assert [chunk.observations for chunk in live().buffered_chunks] == ["* buffered"]
    commits.commit_observation(observing, "* C", batch[6:8])
    assert live().id == new.id and live().active_observations.endswith("* C")
    assert list_ids() == ["m2", "m3", "m8", "m9"]
    old.refresh_from_db()
    assert old.superseded_by_id == new.id and old.due_at is None and old.lease_token is None
    assert claims.list_due_records() == [] and claims.release(observing)
    assert claims.list_due_records() == [new.id]
    assert claims.release(reflecting)
    history = generations.list_history("thread", thread_id="t", resource_id="r")
    assert [record.generation_count for record in history] == [1, 0]


def test_commit_reflection__is_discarded_if_the_log_was_edited(thread: StoredThread) -> None:
    commits.commit_observation(claim(), "* A", tracking.list_unobserved(KEY)[:2])
    reflecting = claim("reflecting")
    head = live()
    edited = generations.open_generation(
        None, head, "* edited", origin="edit", read_log="* A", user_name="Ann", pinned=["edited"]
    )
    assert (edited.origin_type, edited.created_by_name) == ("edit", "Ann")
    with pytest.raises(LogChanged):
        reflection_commits.commit_reflection(reflecting, "* A", "* short")
    assert live().active_observations == "* edited" and live().pinned == ["edited"]
    kept = reflection_commits.commit_reflection(
        reflecting, "* edited", "* e", unproductive_tokens=3
    )
    assert kept.pinned == ["edited"] and kept.unproductive_reflection_tokens == 3


def test_commit_reflection__never_empties_the_log(thread: StoredThread) -> None:
    commits.commit_observation(claim(), "* A", tracking.list_unobserved(KEY)[:2])
    with pytest.raises(ValueError, match="empty"):
        reflection_commits.commit_reflection(claim("reflecting"), "* A", " \n")
    assert live().active_observations == "* A"


def test_buffered_reflection__replaces_its_lines_when_it_is_activated(
    thread: StoredThread,
) -> None:
    observing = claim()
    batch = tracking.list_unobserved(KEY)
    commits.commit_observation(observing, "* A\n* B\n* C", batch[:2])
    reflecting = claim("buffering reflection")
    reflection_commits.commit_buffered_reflection(reflecting, "* A\n* B", 2, "* AB", input_tokens=7)
    record = live()
    assert record.buffered_reflection == "* AB" and record.generation_count == 0
    assert record.buffered_reflection_input_tokens == 7
    assert record.reflected_observation_line_count == 2
    commits.commit_observation(observing, "* D", batch[2:4])
    new = reflection_commits.activate_reflection(KEY, unproductive_at=1)
    assert new is not None and new.generation_count == 1
    assert new.active_observations.startswith("* AB\n\n* C\n\n--- message boundary")
    assert new.unproductive_reflection_tokens == new.observation_token_count
    for generation in ObservationalRecord.objects.all():
        assert generation.buffered_reflection == ""
    assert reflection_commits.activate_reflection(KEY) is None
    with pytest.raises(LogChanged):
        reflection_commits.commit_buffered_reflection(reflecting, "* A", 1, "* x", input_tokens=1)


def test_mark_unproductive__stores_the_size(thread: StoredThread) -> None:
    reflection_commits.mark_unproductive(claim("reflecting"), 50)
    assert live().unproductive_reflection_tokens == 50


def test_title__of_a_person_or_pinned_is_kept(thread: StoredThread) -> None:
    held = claim()
    batch = tracking.list_unobserved(KEY)
    threads.update_thread("t", metadata={"titlePinned": True})
    assert commits.commit_observation(held, "* A", batch[:1], title="Trip").title_change is None
    threads.update_thread("t", metadata={"titlePinned": False}, title="Mine")
    assert commits.commit_observation(held, "* A", batch[1:2], title="Trip").title_change is None
    assert threads.get_thread("t").title == "Mine"


def test_resource_scope__each_thread_has_its_cursor(db: None) -> None:
    key = RecordKey.about_resource("r")
    for name in ("a", "b"):
        made = make_thread("r", name)
        track(save(some_messages(made, 3, prefix=name)), scope="resource")
    generations.get_or_create_live(key)
    held = claim(key=key)
    batch = tracking.list_unobserved(key, thread_id="a")
    commits.commit_observation(held, '<thread id="a">\n* A\n</thread>', batch[:2])
    assert set(list_ids(key)) == {"a2", "b0", "b1", "b2"}
    metadata = threads.get_thread("a").metadata or {}
    assert metadata["mastra"]["om"]["lastObservedAt"] == "2024-01-01T00:00:01.000Z"
    assert threads.get_thread("b").metadata is None
    commits.commit_observation(held, "* B", tracking.list_unobserved(key, thread_id="b"))
    assert list_ids(key) == ["a2"]


def test_events__start_finish_and_abandoned(thread: StoredThread) -> None:
    first = events.start(live(), "observation", cycle_id="c", data={"tokensToObserve": 5})
    events.finish(first, data={"tokensObserved": 5})
    events.finish(first, "failed", error="too late")
    left = events.start(live(), "buffering")
    kept = events.start(live(), "reflection")
    events.record_event(live(), "edit", user_name="Ann")
    assert events.close_abandoned(claim()) == 1
    rows = {event.id: event for event in events.list_events(live())}
    assert len(rows) == 4
    assert rows[first or 0].state == "done"
    assert rows[first or 0].data == {"tokensToObserve": 5, "tokensObserved": 5}
    assert (rows[left or 0].state, rows[kept or 0].state) == ("failed", "running")
    record = live()
    generations.clear(KEY)
    assert events.start(record, "observation") is None
    assert not ObservationEvent.objects.exists()
