"""LoCoMo: very long conversations of two people, in sessions with a date."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import Transcript
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import items_of
from mastra_memory.importers.records import (
    Item,
    LeftOut,
    Owner,
    Remark,
    content_hash,
    derived_id,
    origin,
)

NAME = "locomo"
KEEPS_IDS = False

_SESSION = re.compile(r"session_([0-9]{1,9})")
_DATE = "%I:%M %p on %d %B, %Y"
_KEPT = ("dia_id", "speaker", "img_url", "blip_caption", "query")


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    return "speaker_a" in coercion.mapping(record.get("conversation"))


def read(files: Sequence[SourceFile], owner: Owner) -> Iterator[Item]:
    """A resource for each conversation, and a thread for each of its sessions.

    The first speaker is the user, the second the assistant; their names and each turn's `dia_id`
    are kept as metadata. The turns of a session follow its date by a millisecond each.
    """
    for file in files:
        yield from items_of(file, partial(_conversation, file, owner))


@dataclass(frozen=True, slots=True)
class _Sample:
    id: str
    resource_id: str
    conversation: Mapping[str, Any]
    user: str
    assistant: str
    fallback: datetime
    where: str

    def role_of(self, turn: Mapping[str, Any]) -> str:
        """The role of who speaks, `""` for a third person."""
        speaker = turn.get("speaker")
        return "user" if speaker == self.user else "assistant" if speaker == self.assistant else ""


def _conversation(
    file: SourceFile, owner: Owner, record: Mapping[str, Any], where: str
) -> Iterator[Item]:
    conversation = coercion.mapping(record.get("conversation"))
    user, assistant = (coercion.text(conversation.get(f"speaker_{letter}")) for letter in "ab")
    if not user or not assistant or user == assistant:
        raise InvalidInput("no conversation of two speakers")
    sample_id = coercion.text(record.get("sample_id")) or content_hash(conversation)
    resource_id = owner.of(sample_id)
    sample = _Sample(sample_id, resource_id, conversation, user, assistant, file.modified, where)
    names = (m[1] for key in conversation if (m := _SESSION.fullmatch(key)))
    for name in sorted(names, key=int):
        yield from _session(sample, name)


def _session(sample: _Sample, name: str) -> Iterator[Item]:
    where = f"{sample.where} session {name}"
    date = _date(sample.conversation.get(f"session_{name}_date_time"))
    if date is None:
        yield Remark("LoCoMo sessions have no readable date and got the file's")
    thread_id = derived_id(NAME, sample.resource_id, sample.id, name)
    transcript = Transcript(thread_id, sample.resource_id, date or sample.fallback, where)
    turns = sample.conversation[f"session_{name}"]
    for index, turn in enumerate(turns if isinstance(turns, list) else []):
        _add(transcript, sample, str(index), coercion.mapping(turn), f"{where} turn {index}")
    title = f"{sample.user} and {sample.assistant}, session {name}"
    speakers = {"user": sample.user, "assistant": sample.assistant}
    metadata = {**origin(NAME, sample.id, session=int(name)), "speakers": speakers}
    yield from transcript.items(title=title, metadata=metadata)


def _add(
    transcript: Transcript, sample: _Sample, key: str, turn: Mapping[str, Any], where: str
) -> None:
    role = sample.role_of(turn)
    if not role or not isinstance(turn.get("text"), str):
        reason = "no text of one of the two speakers"
        transcript.leave_out(LeftOut("messages", "refused", where, reason))
        return
    metadata = {name: turn[name] for name in _KEPT if name in turn}
    transcript.add(key, role, _said(turn), metadata=metadata, where=where)


def _date(value: Any) -> datetime | None:
    try:
        return datetime.strptime(coercion.text(value).strip(), _DATE).replace(tzinfo=UTC)
    except ValueError:
        return None


def _said(turn: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The text, then its pictures with their caption."""
    addresses = turn.get("img_url")
    caption = coercion.present(caption=coercion.text(turn.get("blip_caption")))
    said: list[dict[str, Any]] = [{"type": "text", "text": turn["text"]}]
    for address in addresses if isinstance(addresses, list) else [addresses]:
        if isinstance(address, str):
            picture: dict[str, Any] = {"type": "image", "image": address}
            said.append({**picture, "metadata": caption} if caption else picture)
    return said
