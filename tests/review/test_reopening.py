"""Reviews that are new again because the customer wrote again."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from mastra_memory.memory import Memory
from mastra_memory.models import Message, Review, Thread, ThreadChange
from mastra_memory.review import reviews
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana() -> User:
    return User.objects.create(username="ana")


def closed_thread(ana: User, status: str = "resolved", **fields: Any) -> Thread:
    """A thread with a review of this status, and without a record of how it came about."""
    thread = Thread.objects.get(pk=make_thread().id)
    reviews.update_reviews([thread.pk], by=ana, status=status, **fields)
    ThreadChange.objects.all().delete()
    return thread


def write(thread: Thread, role: str = "user", **fields: Any) -> None:
    owner = {"threadId": thread.pk, "resourceId": thread.resource_id}
    now = timezone.now().isoformat()
    message = {"role": role, "content": "And now?", "createdAt": now, **owner, **fields}
    Memory().save_messages([message])


@pytest.mark.parametrize("status", ["resolved", "waiting"])
def test_save_messages__a_user_reopens_the_review(ana: User, status: str) -> None:
    thread = closed_thread(ana, status, assignee_id=ana.pk, priority=3)
    other = closed_thread(ana)
    write(thread)
    review = Review.objects.get(pk=thread.pk)
    assert (review.status, review.resolved_at, review.changed_by_id) == ("new", None, None)
    assert (review.assignee_id, review.priority, review.version) == (str(ana.pk), 3, 2)
    change = ThreadChange.objects.get()
    assert (change.thread_id, change.author_id) == (thread.pk, None)
    assert (change.before, change.after) == ({"status": status}, {"status": "new"})
    assert Review.objects.get(pk=other.pk).status == "resolved"
    assert reviews.list_queue(ana, Thread.objects.all()) == [thread.pk]


@pytest.mark.parametrize("status", ["flagged", "in_review", "new"])
def test_save_messages__open_reviews_stay_as_they_are(ana: User, status: str) -> None:
    thread = closed_thread(ana, "waiting")
    reviews.update_reviews([thread.pk], by=ana, status=status)
    version = Review.objects.get().version
    write(thread)
    review = Review.objects.get()
    assert (review.status, review.version) == (status, version)


def test_save_messages__an_answer_reopens_nothing(ana: User) -> None:
    thread = closed_thread(ana)
    write(thread, role="assistant")
    assert Review.objects.get().status == "resolved"


def test_save_messages__sent_again_reopens_nothing(ana: User) -> None:
    thread = Thread.objects.get(pk=make_thread().id)
    write(thread, id="again")
    reviews.update_reviews([thread.pk], by=ana, status="resolved")
    write(thread, id="again")
    assert Review.objects.get().status == "resolved"
    assert Message.objects.count() == 1


def test_save_messages__old_messages_reopen_nothing(ana: User) -> None:
    thread = closed_thread(ana)
    write(thread, createdAt=(timezone.now() - timedelta(days=2)).isoformat())
    assert Review.objects.get().status == "resolved"


def test_save_messages__reopening_can_be_turned_off(ana: User, settings: Any) -> None:
    settings.MASTRA_MEMORY = {**settings.MASTRA_MEMORY, "REOPEN_ON_MESSAGE": False}
    thread = closed_thread(ana)
    write(thread)
    assert Review.objects.get().status == "resolved"
