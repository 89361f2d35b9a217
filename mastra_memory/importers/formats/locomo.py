"""LoCoMo: very long conversations of two people, in sessions with a date."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import ConversationBuilder
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    ImportNote,
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

NAME = "locomo"
KEEPS_IDS = False

_SESSION = re.compile(r"session_([0-9]{1,9})")
_DATE_FORMAT = "%I:%M %p on %d %B, %Y"
_METADATA_FIELDS = ("dia_id", "speaker", "img_url", "blip_caption", "query")


def detect(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    return "speaker_a" in coercion.to_mapping(record.get("conversation"))


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """A resource for each conversation, and a thread for each of its sessions.

    The first speaker is the user, the second the assistant; their names and each turn's `dia_id`
    are kept as metadata. The turns of a session follow its date by a millisecond each.
    """
    for file in files:
        yield from read_items(file, partial(_read_conversation, file, resources))


@dataclass(frozen=True, slots=True)
class _LocomoSample:
    id: str
    resource_id: str
    conversation: Mapping[str, Any]
    user: str
    assistant: str
    fallback: datetime
    location: str

    def role_of(self, turn: Mapping[str, Any]) -> str:
        """The role of who speaks, `""` for a third person."""
        speaker = turn.get("speaker")
        return "user" if speaker == self.user else "assistant" if speaker == self.assistant else ""


def _read_conversation(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    conversation = coercion.to_mapping(record.get("conversation"))
    user, assistant = (coercion.to_text(conversation.get(f"speaker_{letter}")) for letter in "ab")
    if not user or not assistant or user == assistant:
        raise InvalidInput("no conversation of two speakers")
    sample_id = coercion.to_text(record.get("sample_id")) or hash_content(conversation)
    resource_id = resources.resolve(sample_id)
    sample = _LocomoSample(
        sample_id, resource_id, conversation, user, assistant, file.modified, location
    )
    names = (m[1] for key in conversation if (m := _SESSION.fullmatch(key)))
    for name in sorted(names, key=int):
        yield from _read_session(sample, name)


def _read_session(sample: _LocomoSample, name: str) -> Iterator[SourceItem]:
    location = f"{sample.location} session {name}"
    date = _parse_date(sample.conversation.get(f"session_{name}_date_time"))
    if date is None:
        yield ImportNote("LoCoMo sessions have no readable date and got the file's")
    thread_id = derive_id(NAME, sample.resource_id, sample.id, name)
    builder = ConversationBuilder(thread_id, sample.resource_id, date or sample.fallback, location)
    turns = sample.conversation[f"session_{name}"]
    for index, turn in enumerate(turns if isinstance(turns, list) else []):
        _add_turn(
            builder, sample, str(index), coercion.to_mapping(turn), f"{location} turn {index}"
        )
    title = f"{sample.user} and {sample.assistant}, session {name}"
    speakers = {"user": sample.user, "assistant": sample.assistant}
    metadata = {**build_origin_metadata(NAME, sample.id, session=int(name)), "speakers": speakers}
    yield from builder.build_items(title=title, metadata=metadata)


def _add_turn(
    builder: ConversationBuilder,
    sample: _LocomoSample,
    key: str,
    turn: Mapping[str, Any],
    location: str,
) -> None:
    role = sample.role_of(turn)
    if not role or not isinstance(turn.get("text"), str):
        reason = "no text of one of the two speakers"
        builder.omit(OmittedRecord("messages", "refused", location, reason))
        return
    metadata = {name: turn[name] for name in _METADATA_FIELDS if name in turn}
    builder.add_message(key, role, _convert_turn(turn), metadata=metadata, location=location)


def _parse_date(value: Any) -> datetime | None:
    try:
        return datetime.strptime(coercion.to_text(value).strip(), _DATE_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def _convert_turn(turn: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The text, then its pictures with their caption."""
    addresses = turn.get("img_url")
    caption = coercion.drop_empty(caption=coercion.to_text(turn.get("blip_caption")))
    said: list[dict[str, Any]] = [{"type": "text", "text": turn["text"]}]
    for address in addresses if isinstance(addresses, list) else [addresses]:
        if isinstance(address, str):
            picture: dict[str, Any] = {"type": "image", "image": address}
            said.append({**picture, "metadata": caption} if caption else picture)
    return said
