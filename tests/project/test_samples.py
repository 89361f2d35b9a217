"""The sample conversations are whole, varied and loaded once."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from mastra_memory.memory import Memory
from mastra_memory.models import Message, ObservationalRecord, Thread
from project import samples
from tests.observational.engine import check_invariants, do_due_work

pytestmark = pytest.mark.django_db


def test_load__stores_every_conversation_once() -> None:
    count = samples.load_samples()
    assert count == Message.objects.count() >= 140
    assert samples.load_samples() == 0
    assert Message.objects.count() == count


def test_load__what_a_person_deleted_alone_comes_back() -> None:
    samples.load_samples()
    Memory().delete_thread("sample-hello")
    assert samples.load_samples() == 1


def test_load__is_varied() -> None:
    samples.load_samples()
    assert Thread.objects.count() >= 14
    assert Thread.objects.values("resource_id").distinct().count() >= 8
    assert Thread.objects.exclude(clone_source_id=None).count() == 1
    sizes = Counter(Message.objects.values_list("thread_id", flat=True))
    assert max(sizes.values()) >= 60
    states = {
        part["toolInvocation"]["state"]
        for content in Message.objects.values_list("content", flat=True)
        for part in content["parts"]
        if part["type"] == "tool-invocation"
    }
    assert states == {"call", "result", "output-error", "output-denied"}


def test_load__a_resource_keeps_its_working_memory() -> None:
    samples.load_samples()
    memory = Memory(options=samples.WORKING_MEMORY)
    assert "Kraków" in str(memory.get_working_memory("sample-late-parcel"))


def test_timed_messages__ascend_and_end_in_the_past() -> None:
    for conversation in samples.read_conversations():
        moments = [moment for moment, _, _ in samples.iterate_messages(conversation)]
        assert moments == sorted(moments)
        assert moments[-1] < timezone.now()
        assert moments[0] > timezone.now() - timedelta(days=40)


def test_load__with_observational_memory_the_longer_ones_are_observed(settings: Settings) -> None:
    small = {"observation": {"messageTokens": 300}, "reflection": {"observationTokens": 300}}
    settings.MASTRA_MEMORY = {"OPTIONS": {"observationalMemory": small}}
    samples.load_samples()
    do_due_work()
    records = ObservationalRecord.objects.live().exclude(active_observations="")
    assert records.count() >= 8
    assert not ObservationalRecord.objects.exclude(error="").exists()
    longest = records.get(thread_id="sample-postgres-upgrade")
    assert "Date: " in longest.active_observations and "* 🔴" in longest.active_observations
    check_invariants()
