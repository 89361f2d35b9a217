"""Sample conversations: one YAML file each in this folder, loaded through `Memory`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import yaml
from django.db import transaction
from django.utils import timezone

from mastra_memory.memory import Memory
from mastra_memory.models import Thread
from mastra_memory.types import MessageSelection

Conversation = Mapping[str, Any]
WORKING_MEMORY = {"workingMemory": {"enabled": True, "scope": "resource"}}


def load_samples() -> int:
    """Store the conversations that are missing, and return the number of stored messages.

    A conversation is stored as a whole or not at all. Times are relative to the current day.
    """
    return sum(_load_conversation(conversation) for conversation in read_conversations())


def read_conversations() -> list[Conversation]:
    """Read the files in the order of their names."""
    files = sorted(Path(__file__).parent.glob("*.yaml"))
    return [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]


@transaction.atomic
def _load_conversation(conversation: Conversation) -> int:
    memory = Memory(options=WORKING_MEMORY)
    thread = conversation["thread"]
    if memory.get_thread_by_id(thread["id"]) is not None:
        return 0
    memory.create_thread(
        thread["resource_id"],
        thread_id=thread["id"],
        title=thread.get("title", ""),
        metadata=thread["metadata"],
    )
    stored = _save_messages(memory, conversation, thread["id"], thread["resource_id"])
    if "working_memory" in conversation:
        memory.update_working_memory(thread["id"], conversation["working_memory"])
    for clone in conversation.get("clones", ()):
        stored += _load_clone(memory, thread, get_message_time(conversation, clone["keep"]), clone)
    return stored


def _load_clone(
    memory: Memory, source: Mapping[str, Any], end: datetime, clone: Conversation
) -> int:
    result = memory.clone_thread(
        source["id"],
        clone_id=clone["id"],
        title=clone["title"],
        selection=MessageSelection(end=end),
    )
    copied = len(result.message_id_map)
    return copied + _save_messages(memory, clone, clone["id"], source["resource_id"])


def _save_messages(
    memory: Memory, conversation: Conversation, thread_id: str, resource_id: str
) -> int:
    """Save the messages, and give the thread the times of the first and the last one."""
    owner = {"threadId": thread_id, "resourceId": resource_id}
    batch = [
        {"role": role, "content": content, "createdAt": moment.isoformat(), **owner}
        for moment, role, content in iterate_messages(conversation)
    ]
    memory.save_messages(batch)
    Thread.objects.filter(pk=thread_id).update(
        created_at=batch[0]["createdAt"], updated_at=batch[-1]["createdAt"]
    )
    return len(batch)


def get_message_time(conversation: Conversation, count: int) -> datetime:
    """Return the time of the `count`-th message."""
    return list(iterate_messages(conversation))[count - 1][0]


def iterate_messages(conversation: Conversation) -> Iterator[tuple[datetime, str, Any]]:
    """Yield the time, role and content of each message.

    The file gives the start of the conversation and its long pauses. The other pauses are as long
    as reading and typing take. A conversation that would end in the future starts a day earlier.
    """
    pauses = [_compute_pause(message) for message in conversation["messages"]]
    moment = _compute_start(conversation["start"], sum(pauses, timedelta()))
    for pause, message in zip(pauses, conversation["messages"], strict=True):
        moment += pause
        role = next(key for key in message if key != "after")
        content = message[role]
        yield moment, role, content if isinstance(content, str) else {"format": 2, "parts": content}


def _compute_start(start: Mapping[str, Any], length: timedelta) -> datetime:
    now = timezone.now()
    day = now.date() - timedelta(days=start["days_ago"])
    moment = datetime.combine(day, time.fromisoformat(start["at"]), tzinfo=now.tzinfo)
    return moment if moment + length < now else moment - timedelta(days=1)


def _compute_pause(message: Mapping[str, Any]) -> timedelta:
    if "after" in message:
        return timedelta(seconds=message["after"])
    if "user" in message:
        return timedelta(seconds=20 + _count_characters(message["user"]) / 4)
    return timedelta(seconds=2 + _count_characters(message["assistant"]) / 60)


def _count_characters(content: str | Sequence[Any]) -> int:
    return len(content if isinstance(content, str) else str(content))
