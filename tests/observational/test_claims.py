"""Claims on a record, and requests for work."""

from datetime import timedelta

import pytest
from django.utils import timezone

from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import claims, generations
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.support.factories import make_record, make_thread

pytestmark = pytest.mark.django_db
KEY = RecordKey.about_thread("t", "r")


@pytest.fixture
def record(db: None) -> ObservationalRecord:
    """Return the record of a thread `t`."""
    return make_record(make_thread("r", "t"))


def expire(record: ObservationalRecord) -> None:
    """End the leases of a record."""
    past = timezone.now() - timedelta(seconds=1)
    held = ObservationalRecord.objects.filter(pk=record.pk)
    held.exclude(lease_token=None).update(lease_expires_at=past)
    held.exclude(reflection_token=None).update(reflection_expires_at=past)


def test_claim__only_one_worker_observes_and_one_reflects(record: ObservationalRecord) -> None:
    first = claims.claim_observing(record, "buffering")
    assert first is not None and first.key == KEY and first.record_id == record.id
    assert claims.claim_observing(record, "observing") is None
    reflecting = claims.claim_reflecting(record, "reflecting")
    assert reflecting is not None and claims.claim_reflecting(record, "buffering") is None
    record.refresh_from_db()
    assert record.is_buffering_observation and record.is_reflecting
    assert not record.is_observing and not record.is_buffering_reflection
    assert claims.release(first) and not claims.release(first)
    assert claims.claim_observing(record, "observing") is not None


def test_claim__is_taken_over_after_its_lease(record: ObservationalRecord) -> None:
    first = claims.claim_observing(record, "observing")
    assert first is not None and claims.renew(first)
    expire(record)
    second = claims.claim_observing(record, "observing")
    assert second is not None and second.token != first.token
    assert not claims.renew(first) and not claims.release(first)
    assert claims.renew(second)


def test_claim__moves_to_the_next_generation(record: ObservationalRecord) -> None:
    claim = claims.claim_observing(record, "observing")
    assert claim is not None
    opened = generations.open_generation(None, record, "* new", origin="edit", read_log="")
    assert opened.is_observing and opened.generation_count == 1
    assert claims.renew(claim) and claims.claim_observing(opened, "observing") is None
    record.refresh_from_db()
    assert record.superseded_by_id == opened.id and not record.is_observing


def test_request_work__is_found_until_it_is_finished(record: ObservationalRecord) -> None:
    assert claims.list_due_records() == []
    assert claims.request_work(KEY, "agent") == record.id
    assert claims.list_due_records() == [record.id]
    record.refresh_from_db()
    assert record.agent_id == "agent"
    claim = claims.claim_observing(record, "observing")
    assert claims.list_due_records() == []
    expire(record)
    assert claim is not None and claims.list_due_records() == [record.id]
    assert claims.release(claim)
    assert claims.finish_work(KEY, record.due_at)
    assert claims.list_due_records() == []
    record.refresh_from_db()
    assert record.due_at is None


def test_finish_work__stays_due_while_another_claim_is_left(record: ObservationalRecord) -> None:
    claims.request_work(KEY, None)
    claims.claim_reflecting(record, "reflecting")
    record.refresh_from_db()
    assert record.reflection_expires_at is not None
    assert claims.finish_work(KEY, record.due_at)
    record.refresh_from_db()
    assert record.due_at is not None and record.due_at > record.reflection_expires_at


def test_finish_work__does_not_end_a_request_that_came_meanwhile(
    record: ObservationalRecord,
) -> None:
    claims.request_work(KEY, None)
    record.refresh_from_db()
    claims.request_work(KEY, None)
    assert not claims.finish_work(KEY, record.due_at)
    assert claims.list_due_records() == [record.id]


def test_fail_work__waits_and_counts(record: ObservationalRecord) -> None:
    claims.request_work(KEY, None)
    assert claims.fail_work(KEY, "down", retry_after=60) == 1
    assert claims.fail_work(KEY, "down again", retry_after=60) == 2
    assert claims.list_due_records() == []
    claims.request_work(KEY, None)
    assert claims.list_due_records() == []
    record.refresh_from_db()
    assert (record.attempts, record.error) == (2, "down again")
    assert claims.fail_work(KEY, "refused", retry_after=None) == 3
    record.refresh_from_db()
    assert record.due_at is None
    claims.request_work(KEY, None)
    assert claims.list_due_records() == [record.id]
    record.refresh_from_db()
    claims.finish_work(KEY, record.due_at)
    record.refresh_from_db()
    assert (record.attempts, record.error) == (0, "")


def test_request_work__without_a_record(db: None) -> None:
    thread: StoredThread = make_thread("r", "t")
    assert claims.request_work(RecordKey.about_thread(thread.id, "r"), None) is None
