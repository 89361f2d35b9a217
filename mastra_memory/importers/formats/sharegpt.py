"""ShareGPT data sets: `{id, conversations: [{from, value}]}`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import parts
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import NOT_STORED, Transcript
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import items_of
from mastra_memory.importers.records import Item, LeftOut, Owner, content_hash, derived_id, origin

NAME = "sharegpt"
KEEPS_IDS = False

_ROLES = {
    "human": "user",
    "user": "user",
    **dict.fromkeys(("gpt", "chatgpt", "assistant", "model", "bot"), "assistant"),
    **dict.fromkeys(("bing", "bard", "claude", "gemini"), "assistant"),
}
_CALLS = frozenset({"function_call", "tool_call"})
_RESULTS = frozenset({"observation", "tool", "function_response", "tool_response"})


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    turns = record.get("conversations")
    first = coercion.objects(turns)[:1]
    return isinstance(turns, list) and (not first or "from" in first[0] or "value" in first[0])


def read(files: Sequence[SourceFile], owner: Owner) -> Iterator[Item]:
    """A thread for each conversation.

    There are no times in the format: turns follow each other by a millisecond from the time of the
    file on. The identity of a conversation is its id with its turns, since ids repeat.
    """
    for file in files:
        yield from items_of(file, partial(_conversation, file, owner))


def _conversation(
    file: SourceFile, owner: Owner, record: Mapping[str, Any], where: str
) -> Iterator[Item]:
    turns = record.get("conversations")
    if not isinstance(turns, list):
        raise InvalidInput("no list of conversations")
    given_id, content = coercion.text(record.get("id")), content_hash(turns)
    resource_id = owner.of(given_id or content)
    thread_id = derived_id(NAME, resource_id, given_id, content)
    transcript = Transcript(thread_id, resource_id, file.modified, where)
    for index, turn in enumerate(turns):
        _add(transcript, str(index), coercion.mapping(turn), f"{where} turn {index}")
    return transcript.items(metadata=origin(NAME, given_id))


def _add(transcript: Transcript, key: str, turn: Mapping[str, Any], where: str) -> None:
    speaker = coercion.text(turn.get("from", turn.get("role")))
    value = turn.get("value", turn.get("content"))
    if speaker in NOT_STORED:
        transcript.leave_out(LeftOut("messages", "skipped", where, f"role {speaker}"))
    elif not isinstance(value, str) or not speaker:
        transcript.leave_out(LeftOut("messages", "refused", where, "no speaker with a text"))
    elif speaker in _ROLES:
        transcript.add(key, _ROLES[speaker], [{"type": "text", "text": value}], where=where)
    elif speaker in _CALLS:
        transcript.add(key, "assistant", [_call(key, value)], where=where)
    elif speaker not in _RESULTS:
        reason = f"unknown speaker {speaker[:40]}"
        transcript.leave_out(LeftOut("messages", "refused", where, reason))
    elif transcript.answer(value):
        transcript.leave_out(LeftOut("messages", "joined", where, "result of a tool call"))
    else:
        transcript.add(key, "tool", [parts.lone_result("", "tool", value)], where=where)


def _call(key: str, value: str) -> dict[str, Any]:
    """The call that the text describes, as far as it is JSON."""
    call = coercion.mapping(coercion.json_or_none(value))
    name = coercion.text(call.get("name")) or "tool"
    return parts.tool_invocation(key, name, call.get("arguments", {"input": value}))
