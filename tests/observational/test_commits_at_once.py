"""Many workers and savers at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connection

from mastra_memory import messages
from mastra_memory.db import routing
from mastra_memory.models import (
    MessageObservation,
    ObservationalRecord,
    ObservationChunk,
)
from mastra_memory.observational import (
    claims,
    commits,
    corrections,
    generations,
    tracking,
)
from mastra_memory.observational.keys import RecordKey
from tests.observational.committing import KEY, buffer, claim, list_ids, live, save_tracked
from tests.support.factories import a_message, make_thread, save, some_messages, track

pytestmark = pytest.mark.django_db


def run_at_once(count: int, function: Callable[[int], Any]) -> list[Any]:
    """Call a function in several threads at once, each with its own connection."""

    def call(number: int) -> Any:
        try:
            return function(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


def create_head(key: RecordKey, _: int) -> str:
    """Return the id of the live record, and create it if it is missing."""
    return str(generations.get_or_create_live(key).id)


@pytest.mark.django_db(transaction=True)
def test_get_or_create_head__eight_first_accesses_make_one_record() -> None:
    make_thread("r", "t")
    for key in (KEY, RecordKey.about_resource("r")):
        heads = run_at_once(8, partial(create_head, key))
        assert len(set(heads)) == 1
    assert ObservationalRecord.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_claim__eight_workers_at_once_get_one_claim() -> None:
    make_thread("r", "t")
    record = generations.get_or_create_live(KEY)
    claimed = run_at_once(8, lambda _: claims.claim_observing(record, "observing"))
    assert len(list(filter(None, claimed))) == 1


@pytest.mark.django_db(transaction=True)
def test_activate_chunks__two_at_once_activate_each_chunk_once() -> None:
    thread = make_thread("r", "t")
    save_tracked(thread, some_messages(thread, 8))
    generations.get_or_create_live(KEY)
    for number in range(4):
        buffer(2, f"* {number}")
    run_at_once(4, lambda _: commits.activate_chunks(KEY, 1))
    log = live().active_observations
    assert [log.count(f"* {number}") for number in range(4)] == [1, 1, 1, 1]
    assert live().buffered_chunks == []


@pytest.mark.django_db(transaction=True)
def test_saves__eight_at_once_on_one_resource_neither_deadlock_nor_lose_a_row() -> None:
    key = RecordKey.about_resource("r")
    made = [make_thread("r", f"t{number}") for number in range(4)]
    generations.get_or_create_live(key)

    def save_and_observe(number: int) -> None:
        for turn in range(4):
            thread = made[(number + turn) % 4]
            message = a_message(thread, f"{number}-{turn}")
            with routing.atomic():
                track(save([message]), scope="resource")
                claims.request_work(key, None)
            held = claims.claim_observing(live(key), "observing")
            if held is not None:
                batch = tracking.list_unobserved(key, thread_id=thread.id)
                if batch:
                    commits.commit_observation(held, f"* {number}-{turn}", batch)
                claims.release(held)

    run_at_once(8, save_and_observe)
    rows = MessageObservation.objects.filter(scope="resource")
    assert rows.count() == 32
    observed = rows.exclude(chunk=None).count()
    assert observed == sum(len(chunk.message_ids) for chunk in ObservationChunk.objects.all()) > 0
    assert len(list_ids(key)) == 32 - observed


@pytest.mark.django_db(transaction=True)
def test_restore__while_observations_are_committed_keeps_each_once() -> None:
    made = make_thread("r", "t")
    generations.get_or_create_live(KEY)
    save_tracked(made, some_messages(made, 40))
    held = claim()
    commits.commit_observation(held, "* The first", messages.get_messages(["m0"]))
    corrections.pin(KEY, "0.0", pinned=True, user_name="ann")

    def act(number: int) -> None:
        for turn in range(6):
            if number == 0:
                name = f"m{turn + 1}"
                read = messages.get_messages([name])
                commits.commit_observation(held, f"* About {name}.", read)
            else:
                corrections.restore(KEY, 0, user_name="ann")

    run_at_once(3, act)
    log = live().active_observations
    for number in range(1, 7):
        assert log.count(f"* About m{number}.") == 1
