"""Read Claude data exports: conversations, and memories that become working memory."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.branching import SourceConversation, build_threads
from mastra_memory.importers.chat_messages import build_reasoning_part
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
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    hash_content,
)

NAME = "claude"
KEEPS_IDS = False

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_IGNORED_FILES = ("users", "manifest", "design_chats")
_IGNORED_BLOCKS = frozenset({"token_budget", "flag"})


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a conversation of a Claude export."""
    return isinstance(record.get("chat_messages"), list)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each conversation, a clone for each edited branch, and the memories.

    Each account of the export is an owner, which `resources` maps to a resource.
    """
    projects = dict(_read_projects(files))
    for file in files:
        stem = file.basename.removesuffix(".json")
        if _is_part_of(file, "memories"):
            read_memory = partial(_read_memory, file, resources, projects)
            yield from read_items(file, read_memory, kind="working memories")
        elif not _is_part_of(file, "projects") and not stem.startswith(_IGNORED_FILES):
            yield from read_items(file, partial(_read_conversation, file, resources))


def _is_part_of(file: SourceFile, name: str) -> bool:
    """Return whether the file is `<name>.json` or in a folder of this name."""
    return file.basename == f"{name}.json" or name in file.name.split("/")[:-1]


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
    """Yield the memories of an account, those of each project under a heading."""
    texts = [coercion.to_text(record.get("conversations_memory")).strip()]
    for project_id, text in coercion.to_mapping(record.get("project_memories")).items():
        if coercion.to_text(text).strip():
            texts.append(f"## {projects.get(project_id) or project_id}\n\n{text.strip()}")
    content = "\n\n".join(text for text in texts if text)
    if not content:
        yield OmittedRecord("working memories", "skipped", location, "no content")
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
    current = coercion.to_text(record.get("current_leaf_message_uuid")) or _find_newest(messages)
    return build_threads(
        conversation, _map_parents(messages), current, partial(_add_message, messages, location)
    )


def _index_messages(messages: Sequence[Any]) -> dict[str, Mapping[str, Any]]:
    """Return the messages by id. A missing or repeated id is replaced by the index."""
    indexed: dict[str, Mapping[str, Any]] = {}
    for index, value in enumerate(messages):
        message = coercion.to_mapping(value)
        message_id = coercion.to_text(message.get("uuid"))
        indexed[message_id if message_id and message_id not in indexed else f"#{index}"] = message
    return indexed


def _map_parents(messages: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
    """Return the parent of each message.

    Older exports do not name parents: there each message follows the one before it in the list.
    """
    parents = {
        message_id: coercion.to_text(message.get("parent_message_uuid")) or None
        for message_id, message in messages.items()
    }
    if any(parents.values()):
        return dict(sorted(parents.items(), key=lambda item: _get_time(messages[item[0]])))
    message_ids = list(messages)
    return dict(zip(message_ids, [None, *message_ids], strict=False))


def _find_newest(messages: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the id of the newest message; of several with the same time, the last in the list."""
    message_ids = reversed(list(messages))  # `max` returns the first of equal values
    return max(message_ids, key=lambda message_id: _get_time(messages[message_id]), default=None)


def _get_time(message: Mapping[str, Any]) -> str:
    return coercion.to_text(message.get("created_at"))


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
    """Return the parts of a message. An unknown kind of block becomes a data part.

    The text of an attached document becomes a text part with the name of the file. Of other
    uploads the export contains only the names.
    """
    parts: list[PartDict] = []
    for index, block in enumerate(coercion.to_mappings(message.get("content"))):
        _add_block(parts, block, f"{message_id}:{index}")
    text = coercion.to_text(message.get("text"))
    if text.strip() and not any(part["type"] == "text" for part in parts):
        parts.append({"type": "text", "text": text})
    for attachment in coercion.to_mappings(message.get("attachments")):
        parts.extend(_convert_attachment(attachment))
    for key in ("files", "files_v2"):
        for file in coercion.to_mappings(message.get(key)):
            parts.extend(_convert_upload(file))
    return parts


def _add_block(parts: list[PartDict], block: Mapping[str, Any], block_id: str) -> None:
    kind = coercion.to_text(block.get("type"))
    match kind:
        case "text":
            if coercion.to_text(block.get("text")).strip():
                parts.append({"type": "text", "text": block["text"]})
        case "thinking":
            parts.append(build_reasoning_part(coercion.to_text(block.get("thinking"))))
        case "tool_use":
            call_id = coercion.to_text(block.get("id")) or block_id
            tool = coercion.to_text(block.get("name")) or "tool"
            parts.append(normalization.build_call_part(call_id, tool, block.get("input") or {}))
        case "tool_result":
            _add_result(parts, block, block_id)
        case _ if kind not in _IGNORED_BLOCKS:
            parts.append({"type": f"data-claude-{kind or 'block'}", "data": dict(block)})


def _add_result(parts: list[PartDict], block: Mapping[str, Any], block_id: str) -> None:
    """Store the result of a call in the message's own parts, where Claude exports have both.

    Without the id of a call, the result belongs to the oldest call of its tool without a result.
    """
    tool = coercion.to_text(block.get("name"))
    call_id = coercion.to_text(block.get("tool_use_id"))
    result = _convert_result(block.get("content"))
    calls = [part["toolInvocation"] for part in parts if "toolInvocation" in part]
    same_id = [call for call in calls if call_id and call["toolCallId"] == call_id]
    without_result = [c for c in calls if c["state"] == "call" and tool in ("", c["toolName"])]
    if call := next(iter(same_id or without_result), None):
        normalization.set_result(call, result, failed=block.get("is_error") is True)
    else:
        parts.append(normalization.build_result_part(call_id or block_id, tool or "tool", result))


def _convert_result(content: Any) -> Any:
    """Return the text of a result that consists of text blocks, and any other result unchanged."""
    blocks = coercion.to_mappings(content)
    if blocks and all(block.get("type") == "text" for block in blocks):
        return "\n".join(coercion.to_text(block.get("text")) for block in blocks)
    return content


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
