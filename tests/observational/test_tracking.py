"""Which messages are pending, and how many tokens they have."""

from typing import Any

import pytest

from mastra_memory import messages, threads
from mastra_memory.content import tokens
from mastra_memory.db import sql
from mastra_memory.messages import updates
from mastra_memory.models import MessageObservation
from mastra_memory.observational import generations, tracking, tracking_queries
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.support.factories import (
    a_message,
    fill,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
    track,
)

pytestmark = pytest.mark.django_db
KEY = RecordKey.about_thread("t", "r")
RESOURCE = RecordKey.about_resource("r")


@pytest.fixture
def thread(db: None) -> StoredThread:
    """Return a thread `t` of `r` without messages."""
    return make_thread("r", "t")


def save_tracked(thread: StoredThread, count: int, scope: Any = "thread", **fields: Any) -> int:
    """Save `m0`, `m1`, …, track them, and return their tokens without the overhead of a list."""
    stored = save(some_messages(thread, count, **fields))
    track(stored, scope=scope)
    return sum(tracking.count_tokens(stored))


def list_ids(key: RecordKey = KEY, **choices: Any) -> list[str]:
    """Return the ids of the unobserved messages."""
    return [message.id for message in tracking.list_unobserved(key, **choices)]


def test_count_pending__adds_the_overhead_of_one_list(thread: StoredThread) -> None:
    assert tracking.count_pending(KEY).tokens == 0
    total = save_tracked(thread, 3)
    counted = tracking.count_pending(KEY)
    assert counted == tracking.PendingCount(
        tokens=total + tokens.TOKENS_PER_LIST,
        messages=3,
        unbuffered_tokens=total + tokens.TOKENS_PER_LIST,
    )
    assert tracking.count_pending(RESOURCE).messages == 0


def test_count_pending__counts_what_is_left_of_each_chunk(thread: StoredThread) -> None:
    save_tracked(thread, 9)
    record = make_record(thread)
    for position, ids in enumerate((["m0", "m1"], ["m2"])):
        chunk = make_chunk(record, position, message_tokens=999)
        MessageObservation.objects.filter(message_id__in=ids).update(chunk=chunk)
    rows = MessageObservation.objects.values_list("message_id", "token_count")
    counts = {message_id: count or 0 for message_id, count in rows}
    messages.delete_messages(["m1"])
    pending = tracking.count_pending(KEY)
    assert pending.chunk_tokens == (counts["m0"] + 24, counts["m2"] + 24)
    assert pending.messages == 8
    assert pending.tokens == sum(counts.values()) - counts["m1"] + 24
    assert pending.unbuffered_tokens == pending.tokens - sum(pending.chunk_tokens) > 0
    messages.delete_messages(["m0"])
    assert tracking.count_pending(KEY).chunk_tokens == (0, counts["m2"] + 24)


def test_track_missing__takes_messages_after_the_cursor(thread: StoredThread) -> None:
    save(some_messages(thread, 5))
    assert tracking.track_missing(KEY) == 0
    make_record(thread, last_observed_at=moment(1), observed_message_ids=["m3"])
    assert tracking.track_missing(KEY) == 2
    assert list_ids() == ["m2", "m4"]
    assert tracking.track_missing(KEY) == 0
    assert tracking.count_pending(KEY).uncounted == 0


def test_track_missing__uses_the_cursor_of_each_thread_of_a_resource() -> None:
    cursors = {"a": "2024-01-01T00:00:01.000Z", "b": "soon", "c": None}
    for name, cursor in cursors.items():
        metadata = {"mastra": {"om": {"lastObservedAt": cursor}}} if cursor else None
        made = make_thread("r", name, metadata=metadata)
        save(some_messages(made, 3, prefix=name))
    make_record(resource_id="r", last_observed_at=moment(9))
    assert tracking.track_missing(RESOURCE) == 1 + 3 + 3
    sizes = tracking.list_threads_with_unobserved("r")
    assert [size.thread_id for size in sizes] == ["b", "c", "a"]
    assert sizes[2].oldest == "2024-01-01T00:00:02.000Z"
    assert list_ids(RESOURCE, thread_id="a") == ["a2"]
    assert tracking.count_pending(RESOURCE).tokens == sum(size.tokens for size in sizes)


def test_list_unobserved__ends_at_the_tokens_and_has_at_least_one(thread: StoredThread) -> None:
    total = save_tracked(thread, 4)
    assert list_ids(limit_tokens=1) == ["m0"]
    assert list_ids(limit_tokens=total // 2) == ["m0", "m1"]
    assert len(list_ids(limit_tokens=total * 2)) == 4


def test_list_unobserved__with_and_without_buffered_messages(thread: StoredThread) -> None:
    save_tracked(thread, 3)
    record = make_record(thread)
    chunk = make_chunk(record)
    MessageObservation.objects.filter(message_id="m0").update(chunk=chunk)
    assert list_ids() == ["m0", "m1", "m2"]
    assert list_ids(exclude_buffered=True) == ["m1", "m2"]
    chunk.activated_at = moment()
    chunk.save()
    assert list_ids() == ["m1", "m2"]


def test_edit__counts_the_message_again(thread: StoredThread) -> None:
    save_tracked(thread, 2)
    make_record(thread)
    before = tracking.count_pending(KEY)
    updates.update_messages([{"id": "m0", "content": "so many more words than before"}])
    assert tracking.count_pending(KEY).uncounted == 1
    assert tracking.track_missing(KEY) == 1
    after = tracking.count_pending(KEY)
    assert after.uncounted == 0 and after.tokens > before.tokens
    stored = messages.get_messages(["m0", "m1"])
    assert after.tokens == sum(tracking.count_tokens(stored)) + 24


def test_move__a_message_is_pending_in_its_new_thread(thread: StoredThread) -> None:
    save_tracked(thread, 1)
    chunk = make_chunk(make_record(thread, last_observed_at=moment(9)), activated_at=moment())
    MessageObservation.objects.update(chunk=chunk)
    other = make_thread("r", "other")
    make_record(other, last_observed_at=moment(9))
    save([a_message(other, "m0")])
    assert list_ids() == []
    assert list_ids(RecordKey.about_thread("other", "r")) == ["m0"]


def test_move__a_message_without_a_row_is_not_lost_behind_the_cursor(thread: StoredThread) -> None:
    save(some_messages(thread, 1))
    other = make_thread("r", "other")
    make_record(other, last_observed_at=moment(9))
    save([a_message(other, "m0")])
    tracking.track_missing(RecordKey.about_thread("other", "r"))
    assert list_ids(RecordKey.about_thread("other", "r")) == ["m0"]


def test_transfer__observed_in_the_thread_but_pending_for_the_new_resource(
    thread: StoredThread,
) -> None:
    save_tracked(thread, 2)
    track(messages.get_messages(["m0", "m1"]), scope="resource")
    own = make_chunk(make_record(thread, last_observed_at=moment(9)), activated_at=moment())
    shared = make_chunk(make_record(resource_id="r"), activated_at=moment())
    for scope, chunk in (("thread", own), ("resource", shared)):
        MessageObservation.objects.filter(scope=scope).update(chunk=chunk)
    threads.update_thread("t", metadata={"mastra": {"om": {"lastObservedAt": "2024-01-02"}}})
    save([a_message(thread, "untracked", at=5)])
    threads.transfer_thread("t", "s")
    make_record(resource_id="s")
    tracking.track_missing(RecordKey.about_resource("s"))
    assert list_ids(RecordKey.about_resource("s")) == ["m0", "m1", "untracked"]
    assert list_ids(RecordKey.about_thread("t", "s")) == []
    assert list_ids(RESOURCE) == []


def test_delete__takes_the_state_along(thread: StoredThread) -> None:
    save_tracked(thread, 3)
    messages.delete_messages(["m1"])
    assert list_ids() == ["m0", "m2"]
    threads.delete_thread("t")
    assert not MessageObservation.objects.exists()


def test_clear__messages_become_unobserved(thread: StoredThread) -> None:
    save_tracked(thread, 2)
    om = {"mastra": {"om": {"currentTask": "x"}, "k": 1}}
    threads.update_thread("t", metadata=om)
    record = make_record(thread, last_observed_at=moment(9), generation_count=1)
    make_record(thread, generation_count=0)
    chunk = make_chunk(record, activated_at=moment())
    MessageObservation.objects.filter(message_id="m0").update(chunk=chunk)
    assert generations.clear(KEY) == 2
    generations.get_or_create_live(KEY)
    tracking.track_missing(KEY)
    assert list_ids() == ["m0", "m1"]
    assert (threads.get_thread("t").metadata or {})["mastra"] == {"k": 1}


@pytest.fixture
def long_thread(thread: StoredThread) -> StoredThread:
    """Fill the thread with 20,000 messages, of which 300 are pending or buffered."""
    fill(thread, 20_000)
    record = make_record(thread, last_observed_at=moment(30_000))
    for position in range(200):
        activated_at = moment() if position < 197 else None
        make_chunk(record, position, id=f"chunk{position}", activated_at=activated_at)
    sql.execute(
        """INSERT INTO mastra_memory_messageobservation
            (message_id, scope, thread_id, resource_id, token_count, chunk_id)
        SELECT id, 'thread', thread_id, resource_id, 20,
            CASE WHEN n < 19900 THEN 'chunk' || n / 100 END
        FROM (SELECT *, row_number() OVER (ORDER BY sequence) - 1 AS n
            FROM mastra_memory_message) m"""
    )
    sql.execute("ANALYZE")  # Plans that were prepared for the empty tables are made again.
    return thread


def test_count_pending__reads_only_rows_of_pending_messages(long_thread: StoredThread) -> None:
    plan = sql.fetch_all("EXPLAIN " + tracking_queries.count_pending(KEY), ["t", "t"])
    text = "\n".join(line for (line,) in plan)
    assert "mastra_tracking_" in text
    assert "Seq Scan on mastra_memory_messageobservation" not in text
