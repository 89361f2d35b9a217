"""Read ShareGPT data sets, whose records are `{id, conversations: [{from, value}]}`.

Some data sets have `role` and `content` instead of `from` and `value`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import chat_messages, coercion
from mastra_memory.importers.conversation import INSTRUCTION_ROLES, ConversationBuilder, PartDict
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

NAME = "sharegpt"
KEEPS_IDS = False

_TURN_KEYS = frozenset({"from", "value", "role", "content"})
_CALL_SPEAKERS = frozenset({"function_call", "tool_call"})
_RESULT_SPEAKERS = frozenset({"observation", "tool", "function_response", "tool_response"})


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a list of conversation turns."""
    turns = record.get("conversations")
    first = coercion.to_mappings(turns)[:1]
    return isinstance(turns, list) and all(_TURN_KEYS & turn.keys() for turn in first)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each record.

    The format has no times: the first turn gets the time of the file, and each further one is a
    millisecond later. The thread id depends on the id and the turns, since ids are not unique.
    """
    for file in files:
        yield from read_items(file, partial(_read_conversation, file, resources))


def _read_conversation(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    turns = record.get("conversations")
    if not isinstance(turns, list):
        raise InvalidInput("no list of conversations")
    source_id, content_hash = coercion.to_text(record.get("id")), hash_content(turns)
    resource_id = resources.resolve(source_id or content_hash)
    thread_id = derive_id(NAME, resource_id, source_id, content_hash)
    builder = ConversationBuilder(thread_id, resource_id, file.modified, location)
    for index, turn in enumerate(turns):
        _add_turn(builder, str(index), coercion.to_mapping(turn), f"{location} turn {index}")
    return builder.build_items(metadata=build_origin_metadata(NAME, source_id))


def _add_turn(
    builder: ConversationBuilder, key: str, turn: Mapping[str, Any], location: str
) -> None:
    name = coercion.to_text(turn.get("from", turn.get("role")))
    speaker, role = name.strip().lower(), chat_messages.get_role(name)
    value = turn.get("value", turn.get("content"))
    if "from" not in turn and "value" not in turn and role:
        chat_messages.add_message(builder, key, turn, location)
    elif role in INSTRUCTION_ROLES:
        builder.omit(OmittedRecord("messages", "skipped", location, f"role {role}"))
    elif not isinstance(value, str) or not speaker:
        builder.omit(OmittedRecord("messages", "refused", location, "no speaker or no text"))
    elif role in ("user", "assistant"):
        builder.add_message(key, role, [{"type": "text", "text": value}], location=location)
    elif speaker in _CALL_SPEAKERS:
        builder.add_message(key, "assistant", [_convert_tool_call(key, value)], location=location)
    elif speaker not in _RESULT_SPEAKERS:
        reason = f"unknown speaker {name[:40]}"
        builder.omit(OmittedRecord("messages", "refused", location, reason))
    elif builder.add_tool_result(value):
        builder.omit(OmittedRecord("messages", "joined", location, "result of a tool call"))
    else:
        builder.add_message(
            key, "tool", [normalization.build_result_part("", "tool", value)], location=location
        )


def _convert_tool_call(key: str, value: str) -> PartDict:
    """Return the tool call that a JSON text describes; other text becomes the argument `input`."""
    call = coercion.to_mapping(coercion.parse_json(value))
    name = coercion.to_text(call.get("name")) or "tool"
    return normalization.build_call_part(key, name, call.get("arguments", {"input": value}))
