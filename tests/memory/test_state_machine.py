"""Random writes that happen at the same time, compared with a model in memory.

Each step runs one to three writes at once, each on a database connection of its own. What is stored
afterwards, and what the writes have returned, must be what the model says for one of the orders in
which they can follow each other.

`make test` tries a few steps, `make faults` 10,000: MEMORY_EXAMPLES and MEMORY_STEPS say how many.
"""

import json
import os
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from itertools import permutations
from typing import Any, ClassVar

import pytest
from django.db import connection
from django.test import override_settings
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from mastra_memory.db import sql
from mastra_memory.embedding import indexing
from mastra_memory.exceptions import ConcurrentUpdate, MastraMemoryError
from mastra_memory.memory import Memory
from mastra_memory.models import (
    EmbeddingRequest,
    Message,
    MessageEmbedding,
    ReviewNote,
    Thread,
    ThreadTag,
    WorkingMemoryRevision,
)
from mastra_memory.review import notes, tags
from mastra_memory.testing import FakeEmbedder, FakeLLM
from mastra_memory.threads import titles
from tests.memory.conversation_model import (
    GENERATED_TITLE,
    REFUSED,
    ConversationModel,
    Operation,
    parse_memory,
)
from tests.support.concurrency import ParallelCallers
from tests.support.factories import make_user, unique

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EXAMPLES = int(os.environ.get("MEMORY_EXAMPLES", "3"))
STEPS = int(os.environ.get("MEMORY_STEPS", "40"))
MAX_AT_ONCE = 3
MAX_SENDS = 20
"""How often a client sends a write that fails with `ConcurrentUpdate`."""
OPTIONS: dict[str, Any] = {
    "generateTitle": True,
    "semanticRecall": True,
    "workingMemory": {
        "enabled": True,
        "scope": "thread",
        "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
    },
}
THREADS = ("t1", "t2")
CLONES = ("c1", "c2")
OWNERS = ("alice", "bob")
MESSAGES = ("m1", "m2", "m3", "m4")

threads = st.sampled_from(THREADS)
existing = st.sampled_from((*THREADS, *THREADS, *CLONES))
owners = st.sampled_from(("alice", *OWNERS))
keys = st.sampled_from("ab")
texts = st.builds(unique, st.just("text"))
OPERATIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "create": {"thread_id": threads, "owner": owners},
    "replace": {"thread_id": threads, "owner": owners, "title": texts},
    "rename": {"thread_id": existing, "title": texts},
    "set_key": {"thread_id": existing, "key": keys, "value": st.integers(0, 9)},
    "transfer": {"thread_id": existing, "owner": owners},
    "delete": {"thread_id": existing},
    "clone": {"thread_id": existing, "clone_id": st.sampled_from(CLONES)},
    "save": {
        "texts": st.dictionaries(st.sampled_from(MESSAGES), texts, min_size=1, max_size=3),
        "thread_id": threads,
        "owner": owners,
    },
    "edit": {"message_id": st.sampled_from(MESSAGES), "text": texts},
    "drop": {"message_ids": st.lists(st.sampled_from(MESSAGES), min_size=1, unique=True)},
    "remember": {"thread_id": threads, "key": keys, "value": texts},
    "rewrite": {"thread_id": threads, "key": keys, "value": texts},
    "restore": {"thread_id": threads, "version": st.integers(1, 3)},
    "name": {"thread_id": threads},
    "tag": {"thread_id": existing, "tag": keys},
    "note": {"thread_id": existing},
    "embed": {},
}
OFTEN = ("create", "save", "save", "save")
"""Operations without which there is nothing for the others to act on."""


def build_operation(name: str) -> st.SearchStrategy[Operation]:
    arguments = st.fixed_dictionaries(OPERATIONS[name])
    return arguments.map(lambda values: Operation(name, values))


operations = st.sampled_from((*OPERATIONS, *OFTEN)).flatmap(build_operation)


class Client:
    """Run the operations of the model through `Memory` and what works beside it."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.user = make_user(unique("reviewer"))

    def run(self, operation: Operation) -> Any:
        """Return the outcome as the model has it. Send again what is in conflict."""
        act: Callable[..., Any] = getattr(self, operation.name)
        for _ in range(MAX_SENDS):
            try:
                return act(**operation.arguments)
            except ConcurrentUpdate:
                continue
            except MastraMemoryError:
                return REFUSED
        raise AssertionError(f"{operation} is in conflict again and again")

    def create(self, thread_id: str, owner: str) -> Any:
        return self.memory.create_thread(owner, thread_id=thread_id).id

    def replace(self, thread_id: str, owner: str, title: str) -> Any:
        return self.memory.save_thread(thread_id, owner, title=title, metadata={}).id

    def rename(self, thread_id: str, title: str) -> Any:
        return self.memory.update_thread(thread_id, title=title).id

    def set_key(self, thread_id: str, key: str, value: int) -> Any:
        return self.memory.update_thread(thread_id, metadata={key: value}).id

    def transfer(self, thread_id: str, owner: str) -> Any:
        return self.memory.transfer_thread(thread_id, owner).id

    def delete(self, thread_id: str) -> Any:
        return self.memory.delete_thread(thread_id)

    def clone(self, thread_id: str, clone_id: str) -> Any:
        return len(self.memory.clone_thread(thread_id, clone_id=clone_id).messages)

    def save(self, texts: dict[str, str], thread_id: str, owner: str) -> Any:
        batch = [
            {
                "id": message_id,
                "threadId": thread_id,
                "resourceId": owner,
                "role": "user",
                "content": text,
            }
            for message_id, text in texts.items()
        ]
        return len(self.memory.save_messages(batch).messages)

    def edit(self, message_id: str, text: str) -> Any:
        content = {"format": 2, "parts": [{"type": "text", "text": text}], "content": text}
        return len(self.memory.update_messages([{"id": message_id, "content": content}]))

    def drop(self, message_ids: list[str]) -> Any:
        return self.memory.delete_messages(message_ids)

    def remember(self, thread_id: str, key: str, value: str) -> Any:
        text = json.dumps({key: value})
        return self.memory.update_working_memory(thread_id, text, mode="merge")

    def rewrite(self, thread_id: str, key: str, value: str) -> Any:
        return self.memory.update_working_memory(thread_id, json.dumps({key: value}))

    def restore(self, thread_id: str, version: int) -> Any:
        return self.memory.restore_working_memory(thread_id, version)

    def name(self, thread_id: str) -> Any:
        return titles.generate_title(thread_id)

    def tag(self, thread_id: str, tag: str) -> Any:
        return tags.add_tag([thread_id], tag, by=self.user)

    def note(self, thread_id: str) -> Any:
        notes.add_note(thread_id, "A note", by=self.user)

    def embed(self) -> Any:
        indexing.embed_pending(seconds=1)


def describe_database() -> dict[str, Any]:
    """Return what is stored, in the form of `ConversationModel.describe`."""
    stored_texts: dict[str, list[str]] = defaultdict(list)
    for message in Message.objects.order_by("created_at", "sequence"):
        stored_texts[message.thread_id].append(message.text)
    memory: dict[str, list[Any]] = defaultdict(list)
    for revision in WorkingMemoryRevision.objects.select_related("working_memory").order_by(
        "version"
    ):
        memory[revision.working_memory.thread_id].append(parse_memory(revision.content))
    tag_names: dict[str, list[str]] = defaultdict(list)
    for thread_id, name in ThreadTag.objects.order_by("tag__name").values_list(
        "thread_id", "tag__name"
    ):
        tag_names[thread_id].append(name)
    note_threads = list(ReviewNote.objects.values_list("thread_id", flat=True))
    return {
        thread.pk: {
            "owner": thread.resource_id,
            "title": thread.title,
            "metadata": {k: v for k, v in (thread.metadata or {}).items() if k != "clone"},
            "pending": thread.title_state == Thread.TitleState.PENDING,
            "texts": stored_texts[thread.pk],
            "memory": memory[thread.pk],
            "tags": tag_names[thread.pk],
            "notes": note_threads.count(thread.pk),
        }
        for thread in Thread.objects.order_by("pk")
    }


def _sort_texts(described: dict[str, Any], thread_ids: set[str]) -> dict[str, Any]:
    """Return the description with the texts of these threads in alphabetical order."""
    return {
        thread_id: facts | {"texts": sorted(facts["texts"])} if thread_id in thread_ids else facts
        for thread_id, facts in described.items()
    }


class MemoryMachine(RuleBasedStateMachine):
    """Run writes at once, and find the order that explains their result."""

    isolation: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.blocks = ExitStack()
        self.blocks.enter_context(override_settings(MASTRA_MEMORY={"OPTIONS": OPTIONS}))
        self.blocks.enter_context(FakeEmbedder())
        self.blocks.enter_context(FakeLLM(GENERATED_TITLE))
        sql.execute("DELETE FROM mastra_memory_thread")
        self.callers = self.blocks.enter_context(ParallelCallers(MAX_AT_ONCE))
        self.client = Client()
        self.model = ConversationModel()

    @rule(at_once=st.lists(operations, min_size=1, max_size=MAX_AT_ONCE))
    def write(self, at_once: list[Operation]) -> None:
        outcomes = self.callers.run(self.client.run, at_once)
        stored = describe_database()
        for order in permutations(range(len(at_once))):
            model, expected = self.model, {}
            for index in order:
                model, expected[index] = model.after(at_once[index])
            is_same = [expected[index] for index in range(len(at_once))] == outcomes
            if is_same and self.is_stored(model, stored):
                self.model = model
                return
        raise AssertionError(
            f"No order explains {[*map(str, at_once)]}\nwith the outcomes {outcomes}"
            f"\nbefore: {self.model.describe()}\nafter:  {stored}"
        )

    def is_stored(self, model: ConversationModel, stored: dict[str, Any]) -> bool:
        """Return whether the database has what the model says."""
        described = model.describe()
        mixed = {thread_id for thread_id, thread in model.threads.items() if thread.is_mixed}
        return _sort_texts(described, mixed) == _sort_texts(stored, mixed)

    @invariant()
    def vectors_belong_to_their_messages(self) -> None:
        """Each message has a vector or a request, and both have its thread and owner."""
        provided = set()
        for kind in (MessageEmbedding, EmbeddingRequest):
            for row in kind.objects.select_related("message"):
                message = row.message
                assert (row.thread_id, row.resource_id) == (message.thread_id, message.resource_id)
                provided.add(message.pk)
        originals = Message.objects.filter(thread_id__in=THREADS).values_list("pk", flat=True)
        assert set(originals) <= provided

    def teardown(self) -> None:
        """Close the connections of the callers."""
        self.blocks.close()


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_memory__writes_at_once_are_as_if_one_after_the_other(
    isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = connection.settings_dict["OPTIONS"]
    level = f"-c default_transaction_isolation={isolation.replace(' ', chr(92) + ' ')}"
    monkeypatch.setitem(options, "options", f"{options.get('options', '')} {level}")
    machine = type("Machine", (MemoryMachine,), {"isolation": isolation})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize="MEMORY_EXAMPLES" not in os.environ,
            # The same writes need not meet again in the same way, so that there is nothing to
            # shrink.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
