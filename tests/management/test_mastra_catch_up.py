"""Tests of the command that does the work of lost tasks."""

import io

import pytest
from django.core.management import call_command

from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest, Message, MessageEmbedding, Thread
from tests.support.factories import a_message, make_thread, some_messages

pytestmark = pytest.mark.django_db


def run() -> str:
    """Run the command and return its output."""
    out = io.StringIO()
    call_command("mastra_catch_up", stdout=out)
    return out.getvalue()


def test_mastra_catch_up__needs_no_task() -> None:
    memory = Memory(options={"semanticRecall": True, "generateTitle": True})
    memory.save_messages(some_messages(make_thread("alice", "t"), 12))
    assert Message.objects.filter(search=None).count() == 12
    output = run()
    assert output.splitlines()[:3] == [
        "Embedded 12 messages",
        "Wrote the search words of 12 messages",
        "Processed the titles of 1 threads",
    ]
    assert not EmbeddingRequest.objects.exists()
    assert not Message.objects.filter(search=None).exists()
    assert Thread.objects.get(pk="t").title


def test_mastra_catch_up__second_run_changes_nothing() -> None:
    run()
    assert run().splitlines()[0] == "Embedded 0 messages"


def test_mastra_catch_up__embeds_copies_without_vector_or_request() -> None:
    memory = Memory(options={"semanticRecall": True})
    memory.save_messages(some_messages(make_thread("alice", "t"), 3))
    run()
    copies = memory.clone_thread("t", clone_id="copy")
    lost = copies.messages[1].id
    MessageEmbedding.objects.filter(message_id=lost).delete()
    without_recall = Memory(options={"semanticRecall": False})
    without_recall.save_messages([a_message(copies.thread, "later")])
    assert run().splitlines()[0] == "Embedded 1 messages"
    assert MessageEmbedding.objects.filter(message_id=lost).exists()
    assert not MessageEmbedding.objects.filter(message_id="later").exists()
