"""Read the LoCoMo data set: its conversations as threads, its questions with their evidence.

The data set (Maharana et al., 2024) is licensed CC BY-NC 4.0 and is not part of this project. Set
`LOCOMO` to a folder with its JSON files; by default `data/locomo` is looked for in the project and
in the folders next to it.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support import servers

ANSWERABLE_CATEGORIES = (1, 2, 3, 4)
_TURN_ID = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the ids of the messages that contain the answer."""

    text: str
    answer: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A resource with a message for each turn, and a thread for each session or for all."""

    resource_id: str
    threads: dict[str, list[dict[str, Any]]]
    questions: list[Question]
    asked_at: datetime
    """When the questions are asked: the time of the last message. `last week` is relative to it."""


def find_folder() -> Path | None:
    """Return the folder of the data set, or None if it is not installed."""
    if path := os.environ.get("LOCOMO"):
        return Path(path)
    candidates = [servers.ROOT / "data" / "locomo", *servers.ROOT.parent.glob("*/data/locomo")]
    return next((path for path in candidates if path.is_dir()), None)


def read(folder: Path, *, in_one_thread: bool = False) -> list[Conversation]:
    """Return all conversations of a folder, each in a thread for each session or in one thread."""
    return [
        _parse_conversation(json.loads(path.read_text()), in_one_thread)
        for path in sorted(folder.glob("*.json"))
    ]


def _parse_conversation(sample: dict[str, Any], in_one_thread: bool) -> Conversation:
    resource_id = str(sample["sample_id"])
    conversation = sample["conversation"]
    sessions = [name for name in conversation if _SESSION.fullmatch(name)]
    sessions.sort(key=lambda name: int(name.removeprefix("session_")))
    threads: dict[str, list[dict[str, Any]]] = {}
    for session in sessions:
        thread_id = resource_id if in_one_thread else f"{resource_id}/{session}"
        start = _read_start(conversation[f"{session}_date_time"])
        messages = _messages(resource_id, thread_id, session, start, conversation)
        threads.setdefault(thread_id, []).extend(messages)
    ids_and_times = {
        message["id"]: message["createdAt"] for messages in threads.values() for message in messages
    }
    questions = list(_questions(sample, resource_id, set(ids_and_times)))
    asked_at = datetime.fromisoformat(max(ids_and_times.values()))
    return Conversation(resource_id, threads, questions, asked_at)


def _read_start(text: str) -> datetime:
    """Return the time of a session. The data set has no times of single messages."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _messages(
    resource_id: str, thread_id: str, session: str, start: datetime, conversation: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    for index, turn in enumerate(conversation[session]):
        yield {
            "id": f"{resource_id}/{turn['dia_id']}",
            "threadId": thread_id,
            "resourceId": resource_id,
            "role": "user" if turn["speaker"] == conversation["speaker_a"] else "assistant",
            "createdAt": (start + timedelta(minutes=index)).isoformat(),
            "content": f"{turn['speaker']}: {turn['text']}",
        }


def _questions(
    sample: dict[str, Any], resource_id: str, message_ids: set[str]
) -> Iterator[Question]:
    for item in sample["qa"]:
        if item["category"] in ANSWERABLE_CATEGORIES:
            # Some entries name several turns in one string, and some name turns that do not exist.
            turns = {turn for text in item["evidence"] for turn in _TURN_ID.findall(text)}
            evidence = frozenset(f"{resource_id}/{turn}" for turn in turns) & message_ids
            if evidence:
                yield Question(item["question"], str(item.get("answer", "")), evidence)
