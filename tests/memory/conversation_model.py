"""What threads, messages, working memory and titles look like after a sequence of writes.

A plain model in memory, without a database. A test compares it with what `Memory` has stored.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

GENERATED_TITLE = "A generated title"
REFUSED = "refused"
"""The outcome of a write that raised an error of this app."""


@dataclass
class ModelMessage:
    """A message: its text, and its place in the order of all messages."""

    text: str
    place: int


@dataclass
class ModelThread:
    """A thread with all that belongs to it."""

    owner: str
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    title_is_pending: bool = False
    messages: dict[str, ModelMessage] = field(default_factory=dict)
    memory: list[dict[str, Any]] = field(default_factory=list)
    """All versions of the working memory, the first one is version 1."""
    tags: set[str] = field(default_factory=set)
    notes: int = 0
    is_mixed: bool = False
    """Messages moved here from other threads. They keep their times, which are unique and rising
    within a thread only, so that the order of the messages is not known."""

    def list_texts(self) -> list[str]:
        """Return the texts in the order of the conversation."""
        ordered = sorted(self.messages.values(), key=lambda message: message.place)
        return [message.text for message in ordered]


@dataclass(frozen=True)
class Operation:
    """A write: the name of a method of `ConversationModel`, and its arguments."""

    name: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({arguments})"


@dataclass
class ConversationModel:
    """All threads. Each method is one write; it returns its outcome, or changes nothing."""

    threads: dict[str, ModelThread] = field(default_factory=dict)
    counter: int = 0

    def after(self, operation: Operation) -> "tuple[ConversationModel, Any]":
        """Return the model after a write, and the outcome of the write."""
        changed = deepcopy(self)
        return changed, getattr(changed, operation.name)(**operation.arguments)

    def describe(self) -> dict[str, Any]:
        """Return what can be compared with the database."""
        return {
            thread_id: {
                "owner": thread.owner,
                "title": thread.title,
                "metadata": thread.metadata,
                "pending": thread.title_is_pending,
                "texts": thread.list_texts(),
                "memory": thread.memory,
                "tags": sorted(thread.tags),
                "notes": thread.notes,
            }
            for thread_id, thread in sorted(self.threads.items())
        }

    def find_message(self, message_id: str) -> tuple[ModelThread, ModelMessage] | None:
        """Return a message and its thread."""
        for thread in self.threads.values():
            if message_id in thread.messages:
                return thread, thread.messages[message_id]
        return None

    # Threads

    def create(self, thread_id: str, owner: str) -> Any:
        thread = self.threads.setdefault(thread_id, ModelThread(owner))
        return thread_id if thread.owner == owner else REFUSED

    def replace(self, thread_id: str, owner: str, title: str) -> Any:
        thread = self.threads.setdefault(thread_id, ModelThread(owner))
        if thread.owner != owner:
            return REFUSED
        thread.title, thread.metadata = title, {}
        return thread_id

    def rename(self, thread_id: str, title: str) -> Any:
        if thread_id not in self.threads:
            return REFUSED
        self.threads[thread_id].title = title
        return thread_id

    def set_key(self, thread_id: str, key: str, value: int) -> Any:
        if thread_id not in self.threads:
            return REFUSED
        self.threads[thread_id].metadata[key] = value
        return thread_id

    def transfer(self, thread_id: str, owner: str) -> Any:
        if thread_id not in self.threads:
            return REFUSED
        self.threads[thread_id].owner = owner
        return thread_id

    def delete(self, thread_id: str) -> Any:
        return self.threads.pop(thread_id, None) is not None

    def clone(self, thread_id: str, clone_id: str) -> Any:
        source = self.threads.get(thread_id)
        if source is None or clone_id in self.threads:
            return REFUSED
        clone = ModelThread(source.owner, metadata=dict(source.metadata))
        clone.is_mixed = source.is_mixed
        clone.title = f"Clone of {source.title}" if source.title else ""
        for message_id, message in source.messages.items():
            clone.messages[f"{clone_id}/{message_id}"] = ModelMessage(message.text, message.place)
        clone.memory = [source.memory[-1]] if source.memory else []
        self.threads[clone_id] = clone
        return len(source.messages)

    # Messages

    def save(self, texts: Mapping[str, str], thread_id: str, owner: str) -> Any:
        thread = self.threads.get(thread_id)
        if thread is None or thread.owner != owner:
            return REFUSED
        stored = {message_id: self.find_message(message_id) for message_id in texts}
        if any(entry and entry[0].owner != owner for entry in stored.values()):
            return REFUSED
        for message_id, text in texts.items():
            entry = stored[message_id]
            if entry is None:
                self.counter += 1
                thread.messages[message_id] = ModelMessage(text, self.counter)
            else:
                del entry[0].messages[message_id]
                thread.is_mixed |= entry[0] is not thread
                thread.messages[message_id] = ModelMessage(text, entry[1].place)
        if not thread.title:
            thread.title_is_pending = True
        return len(texts)

    def edit(self, message_id: str, text: str) -> Any:
        entry = self.find_message(message_id)
        if entry is None:
            return 0
        entry[1].text = text
        return 1

    def drop(self, message_ids: list[str]) -> Any:
        entries = [(self.find_message(message_id), message_id) for message_id in message_ids]
        for entry, message_id in entries:
            if entry is not None:
                del entry[0].messages[message_id]
        return sum(entry is not None for entry, _ in entries)

    # What belongs to a thread

    def remember(self, thread_id: str, key: str, value: str) -> Any:
        thread = self.threads.get(thread_id)
        if thread is None:
            return REFUSED
        current = thread.memory[-1] if thread.memory else None
        if current is None or current.get(key) != value:
            thread.memory.append({**(current or {}), key: value})
        return len(thread.memory)

    def rewrite(self, thread_id: str, key: str, value: str) -> Any:
        if thread_id not in self.threads:
            return REFUSED
        self.threads[thread_id].memory.append({key: value})
        return len(self.threads[thread_id].memory)

    def restore(self, thread_id: str, version: int) -> Any:
        thread = self.threads.get(thread_id)
        if thread is None or not 1 <= version <= len(thread.memory):
            return REFUSED
        thread.memory.append(thread.memory[version - 1])
        return len(thread.memory)

    def name(self, thread_id: str) -> Any:
        thread = self.threads.get(thread_id)
        if thread is not None and thread.title_is_pending:
            if not thread.title and thread.messages:
                thread.title = GENERATED_TITLE
            thread.title_is_pending = False
        return None

    def tag(self, thread_id: str, tag: str) -> Any:
        thread = self.threads.get(thread_id)
        if thread is None:
            return REFUSED
        is_new = tag not in thread.tags
        thread.tags.add(tag)
        return int(is_new)

    def note(self, thread_id: str) -> Any:
        if thread_id not in self.threads:
            return REFUSED
        self.threads[thread_id].notes += 1
        return None

    def embed(self) -> Any:
        """Vectors change nothing that is modelled."""
        return None


def parse_memory(text: str) -> dict[str, Any]:
    """Return a stored working memory as the model has it."""
    value: dict[str, Any] = json.loads(text)
    return value
