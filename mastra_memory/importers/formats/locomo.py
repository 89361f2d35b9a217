"""Read LoCoMo, a data set of very long conversations of two people, in dated sessions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import ConversationBuilder, PartDict
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
    """Return whether a record is a LoCoMo sample."""
    return "speaker_a" in coercion.to_mapping(record.get("conversation"))


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each session; each conversation is an owner with its own resource.

    The first speaker becomes the user and the second the assistant. Their names and the `dia_id`
    of each turn are stored as metadata. Turns have no times: the first one gets the date of the
    session, and each further one is a millisecond later.
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
    """The time of sessions without a readable date."""
    location: str

    def get_role(self, turn: Mapping[str, Any]) -> str:
        """Return the role of the speaker of a turn, or an empty string for a third person."""
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
    numbers = (m[1] for key in conversation if (m := _SESSION.fullmatch(key)))
    for number in sorted(numbers, key=int):
        yield from _read_session(sample, number)


def _read_session(sample: _LocomoSample, number: str) -> Iterator[SourceItem]:
    location = f"{sample.location} session {number}"
    date = _parse_date(sample.conversation.get(f"session_{number}_date_time"))
    if date is None:
        yield ImportNote("LoCoMo sessions without a readable date got the time of the file")
    thread_id = derive_id(NAME, sample.resource_id, sample.id, number)
    builder = ConversationBuilder(thread_id, sample.resource_id, date or sample.fallback, location)
    turns = sample.conversation[f"session_{number}"]
    for index, turn in enumerate(turns if isinstance(turns, list) else []):
        _add_turn(
            builder, sample, str(index), coercion.to_mapping(turn), f"{location} turn {index}"
        )
    title = f"{sample.user} and {sample.assistant}, session {number}"
    speakers = {"user": sample.user, "assistant": sample.assistant}
    metadata = {**build_origin_metadata(NAME, sample.id, session=int(number)), "speakers": speakers}
    yield from builder.build_items(title=title, metadata=metadata)


def _add_turn(
    builder: ConversationBuilder,
    sample: _LocomoSample,
    key: str,
    turn: Mapping[str, Any],
    location: str,
) -> None:
    role = sample.get_role(turn)
    if not role or not isinstance(turn.get("text"), str):
        reason = "no text, or an unknown speaker"
        builder.omit(OmittedRecord("messages", "refused", location, reason))
        return
    metadata = {name: turn[name] for name in _METADATA_FIELDS if name in turn}
    builder.add_message(key, role, _convert_turn(turn), metadata=metadata, location=location)


def _parse_date(value: Any) -> datetime | None:
    try:
        return datetime.strptime(coercion.to_text(value).strip(), _DATE_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def _convert_turn(turn: Mapping[str, Any]) -> list[PartDict]:
    """Return the text, then the images with their caption as metadata."""
    urls = turn.get("img_url")
    caption = coercion.drop_empty(caption=coercion.to_text(turn.get("blip_caption")))
    parts: list[PartDict] = [{"type": "text", "text": turn["text"]}]
    for url in urls if isinstance(urls, list) else [urls]:
        if isinstance(url, str):
            image: PartDict = {"type": "image", "image": url}
            parts.append({**image, "metadata": caption} if caption else image)
    return parts
