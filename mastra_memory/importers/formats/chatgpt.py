"""ChatGPT data exports: conversations as trees of messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mastra_memory.content import parts
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.branching import Conversation, threads_of
from mastra_memory.importers.conversation import NOT_STORED, Transcript
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.formats.chatgpt_content import (
    REASONING,
    content_of,
    result_of,
    said_in,
)
from mastra_memory.importers.parsing import items_of, parsed
from mastra_memory.importers.records import Item, LeftOut, Owner, content_hash, origin

NAME = "chatgpt"
KEEPS_IDS = False

_CONVERSATIONS = re.compile(r"conversations?[-_\d]*\.json")
_INSTRUCTIONS = frozenset({"user_editable_context", "model_editable_context"})


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    return isinstance(record.get("mapping"), Mapping)


def read(files: Sequence[SourceFile], owner: Owner) -> Iterator[Item]:
    """A thread for the current path of each conversation, a clone for each edited branch.

    Of an export only its conversations are read (in one file or several); a single file is taken
    whatever its name.
    """
    named = [file for file in files if _CONVERSATIONS.fullmatch(file.basename)]
    user_id = next((_user_id(file) for file in files if file.basename == "user.json"), NAME)
    for file in named or files:
        yield from items_of(file, partial(_conversation, file, owner.of(user_id)))


def _user_id(file: SourceFile) -> str:
    for raw in file.records():
        try:
            return coercion.text(parsed(raw).get("id")) or NAME
        except InvalidInput:
            break
    return NAME


def _conversation(
    file: SourceFile, resource_id: str, record: Mapping[str, Any], where: str
) -> Iterator[Item]:
    nodes = record.get("mapping")
    if not isinstance(nodes, Mapping):
        raise InvalidInput("no mapping of messages")
    given_id = coercion.text(record.get("conversation_id")) or coercion.text(record.get("id"))
    started = coercion.moment(record.get("create_time")) or file.modified
    conversation = Conversation(
        source=NAME,
        id=given_id or content_hash(nodes),
        resource_id=resource_id,
        title=coercion.text(record.get("title")),
        metadata=origin(NAME, given_id, model=coercion.text(record.get("default_model_slug"))),
        created_at=started,
        updated_at=coercion.moment(record.get("update_time")) or started,
        where=where,
    )
    known = dict(sorted(_shaped(nodes), key=lambda named: _moment(named[1])))
    parents = {name: coercion.text(node.get("parent")) or None for name, node in known.items()}
    add = partial(_add, known, where)
    return threads_of(conversation, parents, coercion.text(record.get("current_node")), add)


def _shaped(nodes: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((name, coercion.mapping(node)) for name, node in nodes.items())


def _moment(node: Mapping[str, Any]) -> datetime:
    """When it was made; those that do not say it come last."""
    given = coercion.mapping(node.get("message")).get("create_time")
    return coercion.moment(given) or datetime.max.replace(tzinfo=UTC)


def _add(
    nodes: Mapping[str, Mapping[str, Any]],
    where: str,
    transcript: Transcript,
    name: str,
    reported: bool,
) -> None:
    message = coercion.mapping(nodes[name].get("message"))
    if not message:  # the root has none
        return
    where = f"{where} node {name}"
    left_out = _left_out(message, where) or _take(transcript, name, message, where)
    if left_out and not reported:
        transcript.leave_out(left_out)


def _left_out(message: Mapping[str, Any], where: str) -> LeftOut | None:
    """Why the message is no part of the conversation."""
    role = _role(message)
    if role in NOT_STORED:
        return LeftOut("messages", "skipped", where, f"role {role}")
    if _kind(message) in _INSTRUCTIONS:
        return LeftOut("messages", "skipped", where, "instructions")
    if (
        coercion.mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
        is True
    ):
        return LeftOut("messages", "skipped", where, "hidden in the conversation")
    if role not in ("user", "assistant", "tool"):
        return LeftOut("messages", "refused", where, f"unknown role {role[:40]}")
    return None


def _take(
    transcript: Transcript, name: str, message: Mapping[str, Any], where: str
) -> LeftOut | None:
    content = coercion.mapping(message.get("content"))
    role, tool = _role(message), coercion.text(message.get("recipient"))
    model = coercion.text(coercion.mapping(message.get("metadata")).get("model_slug"))
    further: list[dict[str, Any]] = []
    if role == "tool":
        author = coercion.text(coercion.mapping(message.get("author")).get("name")) or "tool"
        result, further = result_of(content)
        if transcript.answer(result, tool=author, further=further):
            return LeftOut("messages", "joined", where, "result of a tool call")
        said = [parts.lone_result(name, author, result), *further]
    elif role == "assistant" and tool not in ("", "all") and _kind(message) not in REASONING:
        said = [parts.tool_invocation(name, tool, _args(content))]
    else:
        said = content_of(content)
    if not said:
        return LeftOut("messages", "skipped", where, "says nothing")
    transcript.add(
        name,
        role,
        said,
        moment=coercion.moment(message.get("create_time")),
        metadata=coercion.present(importId=name, model=model),
        where=where,
    )
    return None


def _role(message: Mapping[str, Any]) -> str:
    return coercion.text(coercion.mapping(message.get("author")).get("role"))


def _kind(message: Mapping[str, Any]) -> str:
    return coercion.text(coercion.mapping(message.get("content")).get("content_type"))


def _args(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a tool is called with: JSON where it is, else the text under `input`."""
    said = said_in(content)
    value = coercion.json_or_none(said)
    language = coercion.text(content.get("language"))
    known = "" if language == "unknown" else language
    return value if isinstance(value, Mapping) else coercion.present(input=said, language=known)
