"""Claude data exports: conversations, and memories that become working memory."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.branching import SourceConversation, build_threads
from mastra_memory.importers.conversation import INSTRUCTION_ROLES, ConversationBuilder
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import parse_record, read_items
from mastra_memory.importers.records import (
    ImportedWorkingMemory,
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    hash_content,
)

NAME = "claude"
KEEPS_IDS = False

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_OTHER_FILES = ("users", "manifest", "design_chats")


def detect(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    return isinstance(record.get("chat_messages"), list)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """A thread for each conversation, a clone for each edited branch, and the memories.

    With a prefix every account of the export becomes a resource.
    """
    projects = dict(_read_projects(files))
    for file in files:
        stem = file.basename.removesuffix(".json")
        if _is_part_of(file, "memories"):
            understand = partial(_read_memory, file, resources, projects)
            yield from read_items(file, understand, kind="working memories")
        elif not _is_part_of(file, "projects") and not stem.startswith(_OTHER_FILES):
            yield from read_items(file, partial(_read_conversation, file, resources))


def _is_part_of(file: SourceFile, noun: str) -> bool:
    """Whether the file is `noun.json`, or lies in a folder of that name."""
    return file.basename == f"{noun}.json" or noun in file.name.split("/")[:-1]


def _read_projects(files: Sequence[SourceFile]) -> Iterator[tuple[str, str]]:
    """The names of the projects by their ids."""
    for file in files:
        for raw in file.read_records() if _is_part_of(file, "projects") else ():
            try:
                project = parse_record(raw)
            except InvalidInput:
                continue
            yield coercion.to_text(project.get("uuid")), coercion.to_text(project.get("name"))


def _read_memory(
    file: SourceFile,
    resources: ResourceMapping,
    projects: Mapping[str, str],
    record: Mapping[str, Any],
    location: str,
) -> Iterator[SourceItem]:
    """What Claude remembers of a person, and of each project under a heading."""
    texts = [coercion.to_text(record.get("conversations_memory")).strip()]
    for project_id, text in coercion.to_mapping(record.get("project_memories")).items():
        if coercion.to_text(text).strip():
            texts.append(f"## {projects.get(project_id) or project_id}\n\n{text.strip()}")
    content = "\n\n".join(text for text in texts if text)
    if not content:
        yield OmittedRecord("working memories", "skipped", location, "remembers nothing")
        return
    yield ImportedWorkingMemory(
        resource_id=resources.resolve(coercion.to_text(record.get("account_uuid")) or NAME),
        content=content,
        created_at=file.modified,
        updated_at=file.modified,
        location=location,
    )


def _read_conversation(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    if not isinstance(record.get("chat_messages"), list):
        raise InvalidInput("no list of chat_messages")
    messages = _index_messages(record["chat_messages"])
    given_id = coercion.to_text(record.get("uuid"))
    account = coercion.to_text(coercion.to_mapping(record.get("account")).get("uuid"))
    started = coercion.to_datetime(record.get("created_at")) or file.modified
    conversation = SourceConversation(
        source=NAME,
        id=given_id or hash_content(record["chat_messages"]),
        resource_id=resources.resolve(account or NAME),
        title=coercion.to_text(record.get("name")),
        metadata=build_origin_metadata(NAME, given_id, model=coercion.to_text(record.get("model"))),
        created_at=started,
        updated_at=coercion.to_datetime(record.get("updated_at")) or started,
        location=location,
    )
    current = coercion.to_text(record.get("current_leaf_message_uuid")) or _find_newest(messages)
    return build_threads(
        conversation, _map_parents(messages), current, partial(_add_message, messages, location)
    )


def _index_messages(messages: Sequence[Any]) -> dict[str, Mapping[str, Any]]:
    """The messages in their order; one without an id, or with another's, is known by its place."""
    found: dict[str, Mapping[str, Any]] = {}
    for place, given in enumerate(messages):
        message = coercion.to_mapping(given)
        name = coercion.to_text(message.get("uuid"))
        found[name if name and name not in found else f"#{place}"] = message
    return found


def _map_parents(messages: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
    """The tree; older exports are plain lists, in which each message follows the one before."""
    given = {
        name: coercion.to_text(message.get("parent_message_uuid")) or None
        for name, message in messages.items()
    }
    if any(given.values()):
        return dict(sorted(given.items(), key=lambda named: _get_time(messages[named[0]])))
    names = list(messages)
    return dict(zip(names, [None, *names], strict=False))


def _find_newest(messages: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The message said last; of several at that moment the last in the list."""
    names = reversed(list(messages))  # max keeps the first of equals
    return max(names, key=lambda name: _get_time(messages[name]), default=None)


def _get_time(message: Mapping[str, Any]) -> str:
    return coercion.to_text(message.get("created_at"))


def _add_message(
    messages: Mapping[str, Mapping[str, Any]],
    location: str,
    builder: ConversationBuilder,
    name: str,
    reported: bool,
) -> None:
    message = messages[name]
    sender = coercion.to_text(message.get("sender"))
    said = _convert_content(message, name)
    omitted = _find_omission(sender, said, f"{location} message {name}")
    if omitted is None:
        files = [
            coercion.to_text(file.get("file_name"))
            for file in coercion.to_mappings(message.get("files"))
        ]
        builder.add_message(
            name,
            _ROLES[sender],
            said,
            moment=coercion.to_datetime(message.get("created_at")),
            metadata=coercion.drop_empty(importId=name, files=[file for file in files if file]),
            location=f"{location} message {name}",
        )
    elif not reported:
        builder.omit(omitted)


def _find_omission(sender: str, said: Sequence[Any], location: str) -> OmittedRecord | None:
    if sender in INSTRUCTION_ROLES:
        return OmittedRecord("messages", "skipped", location, f"role {sender}")
    if sender not in _ROLES:
        return OmittedRecord("messages", "refused", location, f"unknown sender {sender[:40]}")
    return None if said else OmittedRecord("messages", "skipped", location, "says nothing")


_IGNORED_BLOCKS = frozenset({"token_budget", "flag"})

Part = dict[str, Any]


def _convert_content(message: Mapping[str, Any], name: str) -> list[Part]:
    """The parts of a message; nothing for one that says nothing. Unknown blocks are kept whole.

    The text of attached documents becomes a text part of its own, with the file's name.
    """
    made: list[Part] = []
    for place, block in enumerate(coercion.to_mappings(message.get("content"))):
        _add_block(made, block, f"{name}:{place}")
    text = coercion.to_text(message.get("text"))
    if text.strip() and not any(part["type"] == "text" for part in made):
        made.append({"type": "text", "text": text})
    for attachment in coercion.to_mappings(message.get("attachments")):
        made.extend(_convert_attachment(attachment))
    return made


def _add_block(made: list[Part], block: Mapping[str, Any], name: str) -> None:
    kind = coercion.to_text(block.get("type"))
    match kind:
        case "text":
            if coercion.to_text(block.get("text")).strip():
                made.append({"type": "text", "text": block["text"]})
        case "thinking":
            text = coercion.to_text(block.get("thinking"))
            details = [{"type": "text", "text": text}]
            made.append({"type": "reasoning", "reasoning": text, "details": details})
        case "tool_use":
            call_id = coercion.to_text(block.get("id")) or name
            tool = coercion.to_text(block.get("name")) or "tool"
            made.append(normalization.build_call_part(call_id, tool, block.get("input") or {}))
        case "tool_result":
            _add_result(made, block, name)
        case _ if kind not in _IGNORED_BLOCKS:
            made.append({"type": f"data-claude-{kind or 'block'}", "data": dict(block)})


def _add_result(made: list[Part], block: Mapping[str, Any], name: str) -> None:
    """Join the result to the call that it names, else to the oldest open one of its tool."""
    tool = coercion.to_text(block.get("name"))
    call_id = coercion.to_text(block.get("tool_use_id"))
    result = _convert_result(block.get("content"))
    calls = [part["toolInvocation"] for part in made if "toolInvocation" in part]
    named = [call for call in calls if call_id and call["toolCallId"] == call_id]
    open_ones = [c for c in calls if c["state"] == "call" and tool in ("", c["toolName"])]
    if call := next(iter(named or open_ones), None):
        normalization.set_result(call, result, failed=block.get("is_error") is True)
    else:
        made.append(normalization.build_result_part(call_id or name, tool or "tool", result))


def _convert_result(content: Any) -> Any:
    """The text of a result made of text blocks; any other as it is."""
    blocks = coercion.to_mappings(content)
    if blocks and all(block.get("type") == "text" for block in blocks):
        return "\n".join(coercion.to_text(block.get("text")) for block in blocks)
    return content


def _convert_attachment(attachment: Mapping[str, Any]) -> Sequence[Part]:
    text = coercion.to_text(attachment.get("extracted_content"))
    if not text.strip():
        return ()
    facts = coercion.drop_empty(
        filename=coercion.to_text(attachment.get("file_name")),
        mimeType=coercion.to_text(attachment.get("file_type")),
    )
    return ({"type": "text", "text": text, "metadata": facts},)
