"""Changes of reviews, and the queue."""

import pytest
from django.contrib.auth.models import User

from mastra_memory.exceptions import StaleData
from mastra_memory.models import Review, Thread, ThreadChange
from mastra_memory.review import reviews, tags
from tests.support.factories import make_thread


@pytest.mark.parametrize(
    ("queue", "current", "following"),
    [
        (["a", "b", "c"], "a", "b"),
        (["a", "b", "c"], "c", "a"),
        (["a", "b", "c"], "x", "a"),
        (["a", "b", "c"], None, "a"),
        (["a"], "a", None),
        ([], None, None),
    ],
)
def test_find_next__starts_again_at_the_end(
    queue: list[str], current: str | None, following: str | None
) -> None:
    assert reviews.find_next(queue, current) == following


@pytest.fixture
def ana(db: None) -> User:
    return User.objects.create(username="ana")


def test_update_reviews__records_only_real_changes(ana: User) -> None:
    ids = [make_thread().id, make_thread().id]
    Review.objects.create(thread_id=ids[0], status="waiting")
    assert reviews.update_reviews(ids, by=ana, status="waiting", priority=1) == 1
    change = ThreadChange.objects.get()
    assert change.thread_id == ids[1] and change.before == {"status": "new"}


def test_update_reviews__reopening_clears_the_resolution_time(ana: User) -> None:
    thread_id = make_thread().id
    reviews.update_reviews([thread_id], by=ana, status="resolved")
    assert Review.objects.get().resolved_at is not None
    reviews.update_reviews([thread_id], by=ana, status="flagged")
    assert Review.objects.get().resolved_at is None


def test_update_reviews__an_old_version_changes_nothing(ana: User) -> None:
    thread_id = make_thread().id
    reviews.update_reviews([thread_id], by=ana, version=0, status="waiting")
    with pytest.raises(StaleData):
        reviews.update_reviews([thread_id], by=ana, version=0, status="resolved")
    assert Review.objects.get().status == "waiting"


def test_update_reviews__rows_are_deleted_with_their_thread(ana: User) -> None:
    thread_id = make_thread().id
    reviews.update_reviews([thread_id], by=ana, status="waiting")
    tags.add_tag([thread_id], "late", by=ana)
    Thread.objects.filter(pk=thread_id)._raw_delete("default")
    assert not Review.objects.exists() and not ThreadChange.objects.exists()
