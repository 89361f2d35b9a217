"""Claude data exports: conversations, and memories that become working memory."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.branching import Conversation, threads_of
from mastra_memory.importers.conversation import NOT_STORED, Transcript
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.formats.claude_content import content_of
from mastra_memory.importers.parsing import items_of, parsed
from mastra_memory.importers.records import (
    ImportedWorkingMemory,
    Item,
    LeftOut,
    Owner,
    content_hash,
    origin,
)

NAME = "claude"
KEEPS_IDS = False

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_OTHER_FILES = ("users", "manifest", "design_chats")


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    return isinstance(record.get("chat_messages"), list)


def read(files: Sequence[SourceFile], owner: Owner) -> Iterator[Item]:
    """A thread for each conversation, a clone for each edited branch, and the memories.

    With a prefix every account of the export becomes a resource.
    """
    projects = dict(_projects(files))
    for file in files:
        stem = file.basename.removesuffix(".json")
        if _is(file, "memories"):
            understand = partial(_memory, file, owner, projects)
            yield from items_of(file, understand, kind="working memories")
        elif not _is(file, "projects") and not stem.startswith(_OTHER_FILES):
            yield from items_of(file, partial(_conversation, file, owner))


def _is(file: SourceFile, noun: str) -> bool:
    """Whether the file is `noun.json`, or lies in a folder of that name."""
    return file.basename == f"{noun}.json" or noun in file.name.split("/")[:-1]


def _projects(files: Sequence[SourceFile]) -> Iterator[tuple[str, str]]:
    """The names of the projects by their ids."""
    for file in files:
        for raw in file.records() if _is(file, "projects") else ():
            try:
                project = parsed(raw)
            except InvalidInput:
                continue
            yield coercion.text(project.get("uuid")), coercion.text(project.get("name"))


def _memory(
    file: SourceFile,
    owner: Owner,
    projects: Mapping[str, str],
    record: Mapping[str, Any],
    where: str,
) -> Iterator[Item]:
    """What Claude remembers of a person, and of each project under a heading."""
    texts = [coercion.text(record.get("conversations_memory")).strip()]
    for project_id, text in coercion.mapping(record.get("project_memories")).items():
        if coercion.text(text).strip():
            texts.append(f"## {projects.get(project_id) or project_id}\n\n{text.strip()}")
    content = "\n\n".join(text for text in texts if text)
    if not content:
        yield LeftOut("working memories", "skipped", where, "remembers nothing")
        return
    yield ImportedWorkingMemory(
        resource_id=owner.of(coercion.text(record.get("account_uuid")) or NAME),
        content=content,
        created_at=file.modified,
        updated_at=file.modified,
        where=where,
    )


def _conversation(
    file: SourceFile, owner: Owner, record: Mapping[str, Any], where: str
) -> Iterator[Item]:
    if not isinstance(record.get("chat_messages"), list):
        raise InvalidInput("no list of chat_messages")
    messages = _by_id(record["chat_messages"])
    given_id = coercion.text(record.get("uuid"))
    account = coercion.text(coercion.mapping(record.get("account")).get("uuid"))
    started = coercion.moment(record.get("created_at")) or file.modified
    conversation = Conversation(
        source=NAME,
        id=given_id or content_hash(record["chat_messages"]),
        resource_id=owner.of(account or NAME),
        title=coercion.text(record.get("name")),
        metadata=origin(NAME, given_id, model=coercion.text(record.get("model"))),
        created_at=started,
        updated_at=coercion.moment(record.get("updated_at")) or started,
        where=where,
    )
    current = coercion.text(record.get("current_leaf_message_uuid")) or _newest(messages)
    return threads_of(conversation, _parents(messages), current, partial(_add, messages, where))


def _by_id(messages: Sequence[Any]) -> dict[str, Mapping[str, Any]]:
    """The messages in their order; one without an id, or with another's, is known by its place."""
    found: dict[str, Mapping[str, Any]] = {}
    for place, given in enumerate(messages):
        message = coercion.mapping(given)
        name = coercion.text(message.get("uuid"))
        found[name if name and name not in found else f"#{place}"] = message
    return found


def _parents(messages: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
    """The tree; older exports are plain lists, in which each message follows the one before."""
    given = {
        name: coercion.text(message.get("parent_message_uuid")) or None
        for name, message in messages.items()
    }
    if any(given.values()):
        return dict(sorted(given.items(), key=lambda named: _said_at(messages[named[0]])))
    names = list(messages)
    return dict(zip(names, [None, *names], strict=False))


def _newest(messages: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The message said last; of several at that moment the last in the list."""
    names = reversed(list(messages))  # max keeps the first of equals
    return max(names, key=lambda name: _said_at(messages[name]), default=None)


def _said_at(message: Mapping[str, Any]) -> str:
    return coercion.text(message.get("created_at"))


def _add(
    messages: Mapping[str, Mapping[str, Any]],
    where: str,
    transcript: Transcript,
    name: str,
    reported: bool,
) -> None:
    message = messages[name]
    sender = coercion.text(message.get("sender"))
    said = content_of(message, name)
    left_out = _left_out(sender, said, f"{where} message {name}")
    if left_out is None:
        files = [
            coercion.text(file.get("file_name")) for file in coercion.objects(message.get("files"))
        ]
        transcript.add(
            name,
            _ROLES[sender],
            said,
            moment=coercion.moment(message.get("created_at")),
            metadata=coercion.present(importId=name, files=[file for file in files if file]),
            where=f"{where} message {name}",
        )
    elif not reported:
        transcript.leave_out(left_out)


def _left_out(sender: str, said: Sequence[Any], where: str) -> LeftOut | None:
    if sender in NOT_STORED:
        return LeftOut("messages", "skipped", where, f"role {sender}")
    if sender not in _ROLES:
        return LeftOut("messages", "refused", where, f"unknown sender {sender[:40]}")
    return None if said else LeftOut("messages", "skipped", where, "says nothing")
