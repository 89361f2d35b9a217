"""Read the public data sets LMSYS-Chat-1M, Chatbot Arena and WildChat."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import chat_messages, coercion
from mastra_memory.importers.conversation import ConversationBuilder
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

NAME = "wildchat"
KEEPS_IDS = False

_SIDES = ("conversation", "conversation_a", "conversation_b")


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a list of turns under `conversation`."""
    turns = [turn for side in _SIDES for turn in coercion.to_mappings(record.get(side))[:1]]
    return bool(turns) and all("role" in turn for turn in turns)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each conversation; a record of Chatbot Arena has two."""
    for file in files:
        yield from read_items(file, partial(_read_record, file, resources))


def _read_record(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    sides = [side for side in _SIDES if isinstance(record.get(side), list)]
    if not sides:
        raise InvalidInput("no list of turns under conversation")
    for side in sides:
        yield from _read_conversation(file, resources, record, side, location)


def _read_conversation(
    file: SourceFile,
    resources: ResourceMapping,
    record: Mapping[str, Any],
    side: str,
    location: str,
) -> Iterator[SourceItem]:
    turns = record[side]
    source_id = _get_text(record, "conversation_id", "conversation_hash", "question_id", "id")
    content_hash = hash_content(turns)
    owner = _get_text(record, "hashed_ip", "user_id", "judge")
    resource_id = resources.resolve(owner or source_id or content_hash)
    start = coercion.to_datetime(record.get("timestamp", record.get("tstamp")))
    thread_id = derive_id(NAME, resource_id, source_id, side, content_hash)
    first = coercion.to_mappings(turns)[:1]
    times = (coercion.to_datetime(turn.get("timestamp")) for turn in first)
    # The time of a record of WildChat is that of its last turn.
    start = next(filter(None, times), None) or start or file.modified
    builder = ConversationBuilder(thread_id, resource_id, start, location)
    for index, value in enumerate(turns):
        turn = coercion.to_mapping(value)
        time = coercion.to_datetime(turn.get("timestamp"))
        where = f"{location} turn {index}"
        chat_messages.add_message(builder, str(index), turn, where, time=time)
    model = _get_text(record, side.replace("conversation", "model"))
    return builder.build_items(
        metadata=build_origin_metadata(
            NAME, source_id, model=model, language=_get_text(record, "language")
        )
    )


def _get_text(record: Mapping[str, Any], *keys: str) -> str:
    texts = (coercion.to_text(record.get(key)) for key in keys)
    return next(filter(None, texts), "")
