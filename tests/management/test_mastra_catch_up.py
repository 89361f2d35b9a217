"""The command that does what rows say is still to be done."""

import io

import pytest
from django.core.management import call_command

from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest, Message, MessageEmbedding, Thread
from tests.support.factories import a_message, make_thread, some_messages

pytestmark = pytest.mark.django_db


def run() -> str:
    """What the command says."""
    out = io.StringIO()
    call_command("mastra_catch_up", stdout=out)
    return out.getvalue()


def test_mastra_catch_up__without_any_task_having_run() -> None:
    memory = Memory(options={"semanticRecall": True, "generateTitle": True})
    memory.save_messages(some_messages(make_thread("alice", "t"), 12))
    assert Message.objects.filter(search=None).count() == 12
    said = run()
    assert said.splitlines()[:3] == [
        "Embedded 12 messages",
        "Wrote the words of 12 messages",
        "Worked on 1 titles",
    ]
    assert not EmbeddingRequest.objects.exists()
    assert not Message.objects.filter(search=None).exists()
    assert Thread.objects.get(pk="t").title


def test_mastra_catch_up__twice_changes_nothing() -> None:
    run()
    assert run().splitlines()[0] == "Embedded 0 messages"


def test_mastra_catch_up__finds_copies_with_neither_vector_nor_request() -> None:
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
