"""Read conversations that LibreChat exports as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion, message_tree
from mastra_memory.importers.branching import SourceConversation, build_threads
from mastra_memory.importers.chat_messages import (
    build_reasoning_part,
    convert_part,
    convert_result,
    parse_arguments,
)
from mastra_memory.importers.conversation import ConversationBuilder, PartDict, build_upload_part
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    hash_content,
)

NAME = "librechat"
KEEPS_IDS = False

_TREE_KEYS = ("messagesTree", "messages")
_THINKING_START, _THINKING_END = ":::thinking", "\n:::"


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a conversation of LibreChat."""
    return "conversationId" in record and any(
        isinstance(record.get(key), list | Mapping) for key in _TREE_KEYS
    )


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for the newest path of each conversation, and a clone for each other path.

    The export does not name the path that LibreChat showed. The user id becomes the owner.
    """
    for file in files:
        yield from read_items(file, partial(_read_conversation, file, resources))


def _read_conversation(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    messages = message_tree.index_messages(_list_messages(record), "messageId")
    source_id = coercion.to_text(record.get("conversationId"))
    users = (coercion.to_text(message.get("user")) for message in messages.values())
    owner = coercion.to_text(record.get("user")) or next(filter(None, users), NAME)
    times = (coercion.to_datetime(message.get("createdAt")) for message in messages.values())
    created_at = coercion.to_datetime(record.get("createdAt")) or next(
        filter(None, times), file.modified
    )
    options = coercion.to_mapping(record.get("options"))
    model = coercion.to_text(options.get("model")) or coercion.to_text(record.get("endpoint"))
    conversation = SourceConversation(
        source=NAME,
        id=source_id or hash_content(messages),
        resource_id=resources.resolve(owner),
        title=coercion.to_text(record.get("title")),
        metadata=build_origin_metadata(NAME, source_id, model=model),
        created_at=created_at,
        updated_at=coercion.to_datetime(record.get("updatedAt")) or created_at,
        location=location,
    )
    parents = message_tree.map_parents(messages, "parentMessageId", "createdAt")
    current = message_tree.find_newest(messages, parents, "createdAt")
    return build_threads(conversation, parents, current, partial(_add_message, messages, location))


def _list_messages(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the messages, of which answers may be nested in their questions."""
    for key in _TREE_KEYS:
        value = record.get(key)
        if isinstance(value, list | Mapping):
            return message_tree.flatten_children(value if isinstance(value, list) else [value])
    raise InvalidInput("no messages")


def _add_message(
    messages: Mapping[str, Mapping[str, Any]],
    location: str,
    builder: ConversationBuilder,
    message_id: str,
    already_reported: bool,
) -> None:
    message = messages[message_id]
    location = f"{location} message {message_id}"
    is_user = message.get("isCreatedByUser")
    if not isinstance(is_user, bool):
        is_user = coercion.to_text(message.get("sender")).lower() == "user"
    parts = _convert_message(message, message_id)
    if parts:
        model = "" if is_user else coercion.to_text(message.get("model"))
        builder.add_message(
            message_id,
            "user" if is_user else "assistant",
            parts,
            time=coercion.to_datetime(message.get("createdAt")),
            metadata=coercion.drop_empty(importId=message_id, model=model),
            location=location,
        )
    elif not already_reported:
        builder.omit(OmittedRecord("messages", "skipped", location, "no content"))


def _convert_message(message: Mapping[str, Any], message_id: str) -> list[PartDict]:
    """Return the parts of a message: those of `content`, or else its `text`."""
    blocks = coercion.to_mappings(message.get("content"))
    parts = [
        part
        for index, block in enumerate(blocks)
        for part in _convert_block(block, f"{message_id}:{index}")
    ]
    if not any(part["type"] == "text" for part in parts):
        parts.extend(_convert_text(coercion.to_text(message.get("text"))))
    for key in ("files", "attachments"):
        for file in coercion.to_mappings(message.get(key)):
            parts.extend(_convert_file(file))
    return parts


def _convert_text(text: str) -> Iterator[PartDict]:
    """Yield a text. Older versions put reasoning before it, between lines of colons."""
    end = text.find(_THINKING_END, len(_THINKING_START))
    if text.startswith(_THINKING_START) and end > 0:
        yield build_reasoning_part(text[len(_THINKING_START) : end].strip())
        text = text[end + len(_THINKING_END) :].strip()
    if text.strip():
        yield {"type": "text", "text": text}


def _convert_block(block: Mapping[str, Any], block_id: str) -> Iterator[PartDict]:
    kind = coercion.to_text(block.get("type"))
    value = block.get(kind)
    match kind:
        case "text":
            text = coercion.to_mapping(value).get("value", value)
            if coercion.to_text(text).strip():
                yield {"type": "text", "text": text}
        case "think":
            if coercion.to_text(value).strip():
                yield build_reasoning_part(coercion.to_text(value))
        case "tool_call":
            yield _convert_tool_call(coercion.to_mapping(value), block_id)
        case "image_file" if isinstance(value, Mapping):
            yield from _convert_file(value)
        case "error":
            yield {"type": "error", "error": value or block.get("text")}
        case "agent_update":
            return
        case _:
            yield convert_part(block)


def _convert_tool_call(call: Mapping[str, Any], block_id: str) -> PartDict:
    """Return a tool call with its result; calls of the Assistants API are in `function`."""
    inner = coercion.to_mapping(call.get("function", call.get(str(call.get("type")))))
    name = coercion.to_text(call.get("name")) or coercion.to_text(inner.get("name"))
    args = call.get("args", inner.get("arguments", inner.get("input")))
    part = normalization.build_call_part(
        coercion.to_text(call.get("id")) or block_id,
        name or coercion.to_text(call.get("type")) or "tool",
        parse_arguments(args),
    )
    output = call.get("output", inner.get("output", inner.get("outputs")))
    if output is not None:
        normalization.set_result(part["toolInvocation"], convert_result(output))
    return part


def _convert_file(file: Mapping[str, Any]) -> Iterator[PartDict]:
    name, mime_type, path, file_id = (
        coercion.to_text(file.get(key)) for key in ("filename", "type", "filepath", "file_id")
    )
    if mime_type.startswith("image/") and path.startswith(("https://", "http://", "data:")):
        yield {"type": "image", "image": path, **coercion.drop_empty(filename=name)}
    elif name or file_id:
        size = coercion.to_int_or_none(file.get("bytes"))
        yield build_upload_part(name or file_id, mime_type, id=file_id, path=path, size=size)
