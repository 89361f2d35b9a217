"""Each write, while its thread is deleted or transferred at any moment in between.

A write looks at the thread before it writes rows that refer to it. Wherever the thread changes in
between, the write succeeds or says what has happened: it never ends in an `IntegrityError`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import Http404

from mastra_memory.admin import edits
from mastra_memory.embedding import indexing
from mastra_memory.exceptions import ConcurrentUpdate, MastraMemoryError
from mastra_memory.memory import Memory
from mastra_memory.models import Criterion, Message, ReviewNote, Thread
from mastra_memory.observational import claims, cycle
from mastra_memory.review import notes, reviews, scores, tags, visits
from mastra_memory.testing import FakeEmbedder
from mastra_memory.threads import titles
from tests.support.factories import make_thread, make_user, some_messages, unique
from tests.support.interruption import Interruption, Moment

pytestmark = pytest.mark.django_db(transaction=True)
ALL = os.environ.get("MEASURED_BUDGETS") == "1"
OPTIONS: dict[str, Any] = {
    "generateTitle": True,
    "semanticRecall": True,
    "workingMemory": {"enabled": True, "scope": "thread"},
    "observationalMemory": {
        "observation": {"messageTokens": 20, "bufferTokens": False},
        "reflection": {"observationTokens": 20},
    },
}
OF_RESOURCE: dict[str, Any] = {"workingMemory": {"enabled": True, "scope": "resource"}}
CHANGES = {
    "delete": "DELETE FROM mastra_memory_thread WHERE id = %s",
    "transfer": "UPDATE mastra_memory_thread SET resource_id = 'bob' WHERE id = %s",
}
MOMENTS: list[tuple[str, Moment]] = [
    (change, moment)
    for change in CHANGES
    for moment in ("before", "during")
    if ALL or (change, moment) in {("delete", "before"), ("transfer", "before")}
]


@dataclass
class Conversation:
    """A thread with something of everything that can belong to one."""

    memory: Memory
    user: User
    criterion: Criterion
    id: str = field(default_factory=lambda: unique("race"))
    message_ids: list[str] = field(default_factory=list)

    def fill(self, *, with_observations: bool) -> None:
        """Store messages, working memory, a review and perhaps observations."""
        thread = make_thread("alice", self.id, title="Tea")
        batch = some_messages(thread, 4, prefix=f"{self.id}-")
        self.message_ids = [message["id"] for message in batch]
        self.memory.save_messages(batch)
        self.memory.update_working_memory(self.id, "# First")
        self.memory.update_working_memory(self.id, "# Second")
        if with_observations:
            self.memory.observe(thread_id=self.id)
            self.memory.reflect(thread_id=self.id)
        self.memory.save_messages([self.new_message(), self.new_message()])
        tags.add_tag([self.id], "old", by=self.user)
        notes.add_note(self.id, "A note", by=self.user)

    def new_message(self, **fields: Any) -> dict[str, Any]:
        """A message that is not stored yet."""
        message_id = unique("race-m")
        return {
            "id": message_id,
            "threadId": self.id,
            "resourceId": "alice",
            "role": "user",
            "content": f"I am Ann and I like {message_id} with milk.",
            **fields,
        }

    @property
    def about(self) -> dict[str, Any]:
        """The arguments that choose the observations."""
        return {"thread_id": self.id}

    def use_tool(self) -> None:
        """Call the tool with which an agent writes its working memory."""
        tool = self.memory.working_memory_tool(self.id, resource_id="alice")
        assert tool is not None
        tool.handler({"memory": "# Third"})


Write = Callable[[Conversation], Callable[[], object]]
"""Prepare the write, and return the function that does it."""


WRITES: dict[str, Write] = {
    # The methods of `Memory`, by name; a word after the name tells variants apart.
    "save_messages": lambda c: lambda: c.memory.save_messages([c.new_message()]),
    "save_messages again": lambda c: (
        lambda: c.memory.save_messages([c.new_message(id=c.message_ids[0])])
    ),
    "persist_messages": lambda c: lambda: c.memory.persist_messages([c.new_message()]),
    "update_messages": lambda c: (
        lambda: c.memory.update_messages([{"id": c.message_ids[0], "content": "Changed"}])
    ),
    "delete_messages": lambda c: lambda: c.memory.delete_messages(c.message_ids[:2]),
    "save_turn": lambda c: lambda: c.memory.save_turn(c.id, "Hello", answer="Hi"),
    "create_thread": lambda c: (
        lambda: c.memory.create_thread("alice", thread_id=c.id, metadata={"workingMemory": "# New"})
    ),
    "save_thread": lambda c: (
        lambda: c.memory.save_thread(
            c.id, "alice", title="New", metadata={"workingMemory": "# New"}
        )
    ),
    "update_thread": lambda c: (
        lambda: c.memory.update_thread(c.id, title="New", metadata={"workingMemory": "# New"})
    ),
    "transfer_thread": lambda c: lambda: c.memory.transfer_thread(c.id, "carol"),
    "delete_thread": lambda c: lambda: c.memory.delete_thread(c.id),
    "clone_thread": lambda c: lambda: c.memory.clone_thread(c.id),
    "clone_thread to another owner": lambda c: (
        lambda: c.memory.clone_thread(c.id, resource_id=unique("owner"))
    ),
    "copy_thread": lambda c: lambda: c.memory.copy_thread(c.id),
    "update_working_memory": lambda c: lambda: c.memory.update_working_memory(c.id, "# Third"),
    "update_working_memory of the resource": lambda c: (
        lambda: c.memory.update_working_memory(c.id, "# Third", options=OF_RESOURCE)
    ),
    "restore_working_memory": lambda c: lambda: c.memory.restore_working_memory(c.id, 1),
    "working_memory_tool": lambda c: lambda: c.use_tool(),
    "retry_embeddings": lambda c: lambda: c.memory.retry_embeddings(),
    "observe": lambda c: lambda: c.memory.observe(**c.about),
    "reflect": lambda c: lambda: c.memory.reflect(**c.about),
    "finalize_observations": lambda c: lambda: c.memory.finalize_observations(**c.about),
    "clear_observations": lambda c: lambda: c.memory.clear_observations(**c.about),
    "request_observation": lambda c: lambda: c.memory.request_observation(**c.about),
    "start_observing": lambda c: lambda: c.memory.start_observing(**c.about),
    "start_reflecting": lambda c: lambda: c.memory.start_reflecting(**c.about),
    "update_observational_memory_config": lambda c: (
        lambda: c.memory.update_observational_memory_config(
            {"observation": {"messageTokens": 30}}, **c.about
        )
    ),
    "edit_observation": lambda c: with_observation(
        c, lambda name: c.memory.edit_observation(name, "Corrected", **c.about)
    ),
    "pin_observation": lambda c: with_observation(
        c, lambda name: c.memory.pin_observation(name, **c.about)
    ),
    "delete_observation": lambda c: with_observation(
        c, lambda name: c.memory.delete_observation(name, **c.about)
    ),
    "restore_observations": lambda c: lambda: c.memory.restore_observations(0, **c.about),
    # Workers
    "generating a title": lambda c: without_title(c, lambda: titles.generate_title(c.id)),
    "embedding": lambda c: lambda: indexing.embed_pending(seconds=5),
    "work that is due": lambda c: lambda: run_due_work(c),
    # Reviewers
    "reviews": lambda c: lambda: reviews.update_reviews([c.id], by=c.user, status="flagged"),
    "add_tag": lambda c: lambda: tags.add_tag([c.id], "new", by=c.user),
    "remove_tag": lambda c: lambda: tags.remove_tag(c.id, "old", by=c.user),
    "add_note": lambda c: (
        lambda: notes.add_note(c.id, "Note", by=c.user, message_id=c.message_ids[0])
    ),
    "delete_note": lambda c: with_note(c),
    "save_scores": lambda c: lambda: scores.save_scores(c.id, {c.criterion.pk: "yes"}, by=c.user),
    "record_visit": lambda c: lambda: visits.record_visit(c.id, c.user),
    # Edits in the admin
    "change_title": lambda c: (
        lambda: edits.change_title(c.id, "New", was=edits.fingerprint("Tea"), by=c.user)
    ),
    "change_metadata": lambda c: (
        lambda: edits.change_metadata(c.id, {"a": 1}, was=edits.fingerprint(None), by=c.user)
    ),
    "change_text": lambda c: with_message(c),
    "delete messages in the admin": lambda c: (
        lambda: edits.delete_messages(c.id, c.message_ids[:1], by=c.user)
    ),
    "undo_last_change": lambda c: with_change(c),
    "clone in the admin": lambda c: with_thread(
        c, lambda thread: edits.clone_thread(thread, by=c.user)
    ),
    "transfer in the admin": lambda c: with_thread(
        c, lambda thread: edits.transfer_thread(thread, "carol", by=c.user)
    ),
    "delete in the admin": lambda c: with_thread(
        c, lambda thread: edits.delete_thread(thread, by=c.user)
    ),
}
READS = {
    "context", "get_clone_history", "get_clone_metadata", "get_messages",
    "get_observational_record", "get_observational_status", "get_observations",
    "get_source_thread", "get_system_message", "get_thread", "get_thread_by_id",
    "get_working_memory", "get_working_memory_template", "is_clone", "list_clones",
    "list_messages", "list_messages_of_observation", "list_observational_generations",
    "list_observational_history", "list_observations", "list_threads",
    "list_working_memory_revisions", "recall", "recall_tool", "search", "summarize_conversation",
    "summarize_thread", "trace_message", "wait_for_buffering", "start_export",
    "update_thread_resource_id",
}  # fmt: skip
"""Methods that write nothing, and another name of `transfer_thread`."""


def with_observation(case: Conversation, act: Callable[[str], object]) -> Callable[[], object]:
    name = case.memory.list_observations(**case.about)[0].id
    return lambda: act(name)


def with_thread(case: Conversation, act: Callable[[Thread], object]) -> Callable[[], object]:
    thread = Thread.objects.get(pk=case.id)
    return lambda: act(thread)


def with_note(case: Conversation) -> Callable[[], object]:
    note = ReviewNote.objects.get(thread_id=case.id)
    return lambda: notes.delete_note(case.id, note.pk, by=case.user)


def with_message(case: Conversation) -> Callable[[], object]:
    message = Message.objects.get(pk=case.message_ids[0])
    was = edits.fingerprint(message.content)
    return lambda: edits.change_text(message, "Changed", was=was, by=case.user)


def with_change(case: Conversation) -> Callable[[], object]:
    edits.delete_messages(case.id, case.message_ids[:1], by=case.user)
    return lambda: edits.undo_last_change(case.id, by=case.user)


def without_title(case: Conversation, act: Callable[[], object]) -> Callable[[], object]:
    Thread.objects.filter(pk=case.id).update(title="", title_source="", title_state="pending")
    return act


def run_due_work(case: Conversation) -> None:
    for record_id in claims.list_due_records():
        cycle.run_due_cycle(record_id)


def test_writes__all_public_methods_are_listed() -> None:
    public = {
        name
        for name in dir(Memory)
        if not name.startswith("_") and not (name[0] == "a" and hasattr(Memory, name[1:]))
    }
    assert public - READS <= {name.partition(" ")[0] for name in WRITES}


@pytest.mark.parametrize(("change", "moment"), MOMENTS)
@pytest.mark.parametrize("name", WRITES)
def test_write__survives_a_change_of_its_thread(
    name: str, change: str, moment: Moment, memory_settings: Callable[..., None]
) -> None:
    memory_settings(OPTIONS=OPTIONS)
    criterion = Criterion.objects.create(name="Helpful", kind="yes_no")
    user = make_user("ann")
    position, was_reached = 0, True
    while was_reached:
        case = Conversation(Memory(), user, criterion)
        case.fill(with_observations=any(word in name for word in ("observ", "reflect", "due")))
        with FakeEmbedder():
            write = WRITES[name](case)
            interruption = Interruption(CHANGES[change], [case.id], position, moment)
            with interruption.install():
                try:
                    write()
                except (MastraMemoryError, Http404) as error:
                    # Running it again cannot help if the thread is gone.
                    assert not isinstance(error, ConcurrentUpdate), (position, error)
        was_reached = interruption.was_reached
        position += 1
    assert position > 1
