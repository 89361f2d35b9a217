"""Conversations of the LoCoMo data set as threads, and its questions with the turns that answer.

The data set (Maharana et al., 2024) is licensed CC BY-NC 4.0 and no part of this project. LOCOMO
names a folder with its JSON files; without it a folder `data/locomo` here or beside is looked for.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests import servers

CATEGORIES = (1, 2, 3, 4)
"""The questions that have an answer."""
_TURN = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the messages that hold the answer."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One resource: a thread for each session, a message for each turn."""

    resource_id: str
    threads: dict[str, list[dict[str, Any]]]
    questions: list[Question]


def folder() -> Path | None:
    """Where the data set lies; None when it is not here."""
    if named := os.environ.get("LOCOMO"):
        return Path(named)
    found = [servers.ROOT / "data" / "locomo", *servers.ROOT.parent.glob("*/data/locomo")]
    return next((path for path in found if path.is_dir()), None)


def read(path: Path) -> list[Conversation]:
    """All conversations of a folder."""
    return [_conversation(json.loads(file.read_text())) for file in sorted(path.glob("*.json"))]


def _conversation(sample: dict[str, Any]) -> Conversation:
    resource_id = str(sample["sample_id"])
    talk = sample["conversation"]
    names = [name for name in talk if _SESSION.fullmatch(name)]
    names.sort(key=lambda name: int(name.removeprefix("session_")))
    threads = {
        f"{resource_id}/{name}": list(_messages(resource_id, name, number, talk))
        for number, name in enumerate(names)
    }
    known = {message["id"] for messages in threads.values() for message in messages}
    return Conversation(resource_id, threads, list(_questions(sample, resource_id, known)))


def _messages(
    resource_id: str, session: str, number: int, talk: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    start = datetime(2023, 1, 1, tzinfo=UTC) + timedelta(days=number)
    for place, turn in enumerate(talk[session]):
        yield {
            "id": f"{resource_id}/{turn['dia_id']}",
            "threadId": f"{resource_id}/{session}",
            "resourceId": resource_id,
            "role": "user" if turn["speaker"] == talk["speaker_a"] else "assistant",
            "createdAt": (start + timedelta(minutes=place)).isoformat(),
            "content": f"{turn['speaker']}: {turn['text']}",
        }


def _questions(sample: dict[str, Any], resource_id: str, known: set[str]) -> Iterator[Question]:
    for asked in sample["qa"]:
        if asked["category"] in CATEGORIES:
            turns = {turn for text in asked["evidence"] for turn in _TURN.findall(text)}
            evidence = frozenset(f"{resource_id}/{turn}" for turn in turns) & known
            if evidence:
                yield Question(asked["question"], evidence)
