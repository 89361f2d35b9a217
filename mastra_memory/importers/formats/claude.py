"""Read Claude data exports: conversations, and memories that become working memory."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import claude_blocks, coercion, message_tree
from mastra_memory.importers.branching import SourceConversation, build_threads
from mastra_memory.importers.conversation import (
    INSTRUCTION_ROLES,
    ConversationBuilder,
    PartDict,
    build_upload_part,
)
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import parse_record, read_items
from mastra_memory.importers.records import (
    ImportedWorkingMemory,
    ImportNote,
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

NAME = "claude"
KEEPS_IDS = False

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_MEMORY_KEYS = frozenset({"conversations_memory", "project_memories", "memory_files"})
_OTHER_FILES = re.compile(r"(?:manifest.*|users|login_history|artifact.*|comments)\.json")
"""Files of an export with other data than conversations."""


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a conversation or the memories of a Claude export."""
    return isinstance(record.get("chat_messages"), list) or _is_memory(record)


def _is_memory(record: Mapping[str, Any]) -> bool:
    return not _MEMORY_KEYS.isdisjoint(record)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each conversation, a clone for each edited branch, and the memories.

    Each account of the export is an owner, which `resources` maps to a resource. Files with other
    data, such as `users.json`, are counted in a note.
    """
    projects = dict(_read_projects(files))
    has_conversations = any(_is_part_of(file, "conversations") for file in files)
    for file in files:
        is_conversations = _is_part_of(file, "conversations") or not has_conversations
        if _is_part_of(file, "projects"):
            continue
        if _is_part_of(file, "memories"):
            read_memory = partial(_read_memory, file, resources, projects)
            yield from read_items(file, read_memory, kind="working memories")
        elif _is_part_of(file, "design_chats"):
            yield from read_items(file, partial(_read_design_chat, file, resources))
        elif is_conversations and not _OTHER_FILES.fullmatch(file.basename):
            yield from read_items(file, partial(_read_record, file, resources, projects))
        else:
            yield ImportNote(f"files without conversations in {file.name.partition('/')[0]}")


def _is_part_of(file: SourceFile, name: str) -> bool:
    """Return whether the file is `<name>.json`, a numbered part of it, or in a folder `<name>`."""
    is_part = re.fullmatch(rf"{name}[-_\d]*\.jsonl?", file.basename)
    return bool(is_part) or name in file.name.split("/")[:-1]


def _read_record(
    file: SourceFile,
    resources: ResourceMapping,
    projects: Mapping[str, str],
    record: Mapping[str, Any],
    location: str,
) -> Iterator[SourceItem]:
    if _is_memory(record):
        return _read_memory(file, resources, projects, record, location)
    return _read_conversation(file, resources, record, location)


def _read_projects(files: Sequence[SourceFile]) -> Iterator[tuple[str, str]]:
    """Yield the id and the name of each project."""
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
    """Yield the memories of an account, those of each project and each file under a heading."""
    texts = [coercion.to_text(record.get("conversations_memory")).strip()]
    for project_id, text in coercion.to_mapping(record.get("project_memories")).items():
        if coercion.to_text(text).strip():
            texts.append(f"## {projects.get(project_id) or project_id}\n\n{text.strip()}")
    for memory in coercion.to_mappings(record.get("memory_files")):
        path, text = (coercion.to_text(memory.get(key)).strip() for key in ("path", "content"))
        if text:
            texts.append(f"## {path}\n\n{text}" if path else text)
    content = "\n\n".join(text for text in texts if text)
    if not content:
        yield OmittedRecord("working memories", "skipped", location, "no content")
        return
    yield ImportedWorkingMemory(
        resource_id=resources.resolve(_get_memory_account(file, record)),
        content=content,
        created_at=file.modified,
        updated_at=file.modified,
        location=location,
    )


def _get_memory_account(file: SourceFile, record: Mapping[str, Any]) -> str:
    """Return the account of a memory, which may only be in the file name `memories/<id>.json`."""
    *folders, _ = file.name.split("/")
    stem = file.basename.removesuffix(".json") if "memories" in folders else ""
    return coercion.to_text(record.get("account_uuid")) or stem or NAME


def _read_design_chat(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    """Return the items of a chat of Claude Design, whose messages are a list without branches."""
    messages = record.get("messages")
    if not isinstance(messages, list):
        raise InvalidInput("no list of messages")
    chat_id = coercion.to_text(record.get("uuid")) or hash_content(messages)
    authors = (
        coercion.to_text(coercion.to_mapping(message.get("content")).get("authorAccountUuid"))
        for message in coercion.to_mappings(messages)
    )
    resource_id = resources.resolve(next(filter(None, authors), NAME))
    start = coercion.to_datetime(record.get("created_at")) or file.modified
    thread_id = derive_id(NAME, resource_id, "design", chat_id)
    builder = ConversationBuilder(thread_id, resource_id, start, location)
    for index, value in enumerate(messages):
        message = coercion.to_mapping(value)
        sender, content = coercion.to_text(message.get("role")), message.get("content")
        inner = content.get("content") if isinstance(content, Mapping) else content
        parts = claude_blocks.convert_blocks(inner, str(index))
        where = f"{location} message {index}"
        if omitted := _find_omission(sender, parts, where):
            builder.omit(omitted)
            continue
        time = coercion.to_datetime(message.get("created_at"))
        builder.add_message(str(index), _ROLES[sender], parts, time=time, location=where)
    project = coercion.to_text(coercion.to_mapping(record.get("project")).get("name"))
    return builder.build_items(
        title=coercion.to_text(record.get("title")) or coercion.to_text(record.get("name")),
        metadata=build_origin_metadata(NAME, chat_id, project=project),
    )


def _read_conversation(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    if not isinstance(record.get("chat_messages"), list):
        raise InvalidInput("no list of chat_messages")
    messages = message_tree.index_messages(record["chat_messages"], "uuid")
    source_id = coercion.to_text(record.get("uuid"))
    account = coercion.to_text(coercion.to_mapping(record.get("account")).get("uuid"))
    created_at = coercion.to_datetime(record.get("created_at")) or file.modified
    conversation = SourceConversation(
        source=NAME,
        id=source_id or hash_content(record["chat_messages"]),
        resource_id=resources.resolve(account or NAME),
        title=coercion.to_text(record.get("name")),
        metadata=build_origin_metadata(
            NAME, source_id, model=coercion.to_text(record.get("model"))
        ),
        created_at=created_at,
        updated_at=coercion.to_datetime(record.get("updated_at")) or created_at,
        location=location,
    )
    parents = message_tree.map_parents(messages, "parent_message_uuid", "created_at")
    current = coercion.to_text(record.get("current_leaf_message_uuid"))
    current = current or message_tree.find_newest(messages, parents, "created_at") or ""
    return build_threads(conversation, parents, current, partial(_add_message, messages, location))


def _add_message(
    messages: Mapping[str, Mapping[str, Any]],
    location: str,
    builder: ConversationBuilder,
    message_id: str,
    already_reported: bool,
) -> None:
    message = messages[message_id]
    sender = coercion.to_text(message.get("sender"))
    parts = _convert_content(message, message_id)
    omitted = _find_omission(sender, parts, f"{location} message {message_id}")
    if omitted is None:
        builder.add_message(
            message_id,
            _ROLES[sender],
            parts,
            time=coercion.to_datetime(message.get("created_at")),
            metadata={"importId": message_id},
            location=f"{location} message {message_id}",
        )
    elif not already_reported:
        builder.omit(omitted)


def _find_omission(sender: str, parts: Sequence[PartDict], location: str) -> OmittedRecord | None:
    """Return why the message is not part of the conversation, or None if it is."""
    if sender in INSTRUCTION_ROLES:
        return OmittedRecord("messages", "skipped", location, f"role {sender}")
    if sender not in _ROLES:
        return OmittedRecord("messages", "refused", location, f"unknown sender {sender[:40]}")
    return None if parts else OmittedRecord("messages", "skipped", location, "no content")


def _convert_content(message: Mapping[str, Any], message_id: str) -> list[PartDict]:
    """Return the parts of a message.

    The text of an attached document becomes a text part with the name of the file. Of other
    uploads the export contains only the names.
    """
    parts = claude_blocks.convert_blocks(message.get("content"), message_id)
    text = coercion.to_text(message.get("text"))
    if text.strip() and not any(part["type"] == "text" for part in parts):
        parts.append({"type": "text", "text": text})
    for attachment in coercion.to_mappings(message.get("attachments")):
        parts.extend(_convert_attachment(attachment))
    for key in ("files", "files_v2"):
        for file in coercion.to_mappings(message.get(key)):
            parts.extend(_convert_upload(file))
    return parts


def _convert_attachment(attachment: Mapping[str, Any]) -> Sequence[PartDict]:
    text = coercion.to_text(attachment.get("extracted_content"))
    if not text.strip():
        return _convert_upload(attachment)
    metadata = coercion.drop_empty(
        filename=coercion.to_text(attachment.get("file_name")),
        mimeType=coercion.to_text(attachment.get("file_type")),
    )
    return ({"type": "text", "text": text, "metadata": metadata},)


def _convert_upload(file: Mapping[str, Any]) -> Sequence[PartDict]:
    name, mime_type = (coercion.to_text(file.get(key)) for key in ("file_name", "file_type"))
    file_id = coercion.to_text(file.get("file_uuid")) or coercion.to_text(file.get("id"))
    if not name and not file_id:
        return ()
    size = coercion.to_int_or_none(file.get("file_size"))
    return (build_upload_part(name or file_id, mime_type, id=file_id, size=size),)
