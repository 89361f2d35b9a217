"""Read chats that Open WebUI exports, which are trees of messages like those of ChatGPT."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import chat_messages, coercion, message_tree, response_items
from mastra_memory.importers.branching import SourceConversation, build_threads
from mastra_memory.importers.conversation import (
    INSTRUCTION_ROLES,
    ConversationBuilder,
    PartDict,
    build_source_part,
    build_upload_part,
)
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    hash_content,
)

NAME = "openwebui"
KEEPS_IDS = False

_BLOCK = re.compile(r'<details\s+type="(reasoning|tool_calls|code_interpreter)"([^>]*)>')
_BLOCK_END = "</details>"
_ATTRIBUTE = re.compile(r'([a-z_]+)="([^"]*)"')
_SUMMARY = re.compile(r"\A\s*<summary>[^<]*</summary>\s*")
_CODE = re.compile(r"\A```[\w+-]*\n|\n```\s*\Z")


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a chat of Open WebUI."""
    chat = _get_chat(record)
    history = coercion.to_mapping(chat.get("history"))
    is_inner = "chat" in record and isinstance(chat.get("messages"), list)
    return isinstance(history.get("messages"), Mapping) or is_inner


def _get_chat(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the chat in a record of the export, or the chat that is a record itself."""
    return coercion.to_mapping(record.get("chat", record))


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for the current path of each chat, and a clone for each other path.

    The user id of a chat becomes the owner.
    """
    for file in files:
        yield from read_items(file, partial(_read_chat, file, resources))


def _read_chat(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    chat = _get_chat(record)
    messages = _index_messages(chat)
    source_id = coercion.to_text(record.get("id")) or coercion.to_text(chat.get("id"))
    owner = coercion.to_text(record.get("user_id")) or coercion.to_text(chat.get("user_id"))
    created_at = coercion.to_datetime(record.get("created_at", chat.get("timestamp")))
    created_at = created_at or file.modified
    models = coercion.to_texts(chat.get("models"))
    conversation = SourceConversation(
        source=NAME,
        id=source_id or hash_content(messages),
        resource_id=resources.resolve(owner or NAME),
        title=coercion.to_text(record.get("title")) or coercion.to_text(chat.get("title")),
        metadata=build_origin_metadata(NAME, source_id, model=", ".join(filter(None, models))),
        created_at=created_at,
        updated_at=coercion.to_datetime(record.get("updated_at")) or created_at,
        location=location,
    )
    parents = message_tree.map_parents(messages, "parentId", "timestamp")
    current = coercion.to_text(coercion.to_mapping(chat.get("history")).get("currentId"))
    return build_threads(conversation, parents, current, partial(_add_message, messages, location))


def _index_messages(chat: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the messages by id, in the order of the source.

    Chats of old versions have only a list of messages.
    """
    messages = coercion.to_mapping(chat.get("history")).get("messages")
    if isinstance(messages, Mapping):
        return {key: coercion.to_mapping(message) for key, message in messages.items()}
    if isinstance(chat.get("messages"), list):
        return message_tree.index_messages(chat["messages"], "id")
    raise InvalidInput("no messages")


def _add_message(
    messages: Mapping[str, Mapping[str, Any]],
    location: str,
    builder: ConversationBuilder,
    message_id: str,
    already_reported: bool,
) -> None:
    message = messages[message_id]
    name = coercion.to_text(message.get("role"))
    role = chat_messages.get_role(name)
    location = f"{location} message {message_id}"
    omitted = None
    parts = _convert_message(message, message_id) if role else []
    if role in INSTRUCTION_ROLES:
        omitted = OmittedRecord("messages", "skipped", location, f"role {role}")
    elif not role:
        omitted = OmittedRecord("messages", "refused", location, f"unknown role {name[:40]}")
    elif not parts:
        omitted = OmittedRecord("messages", "skipped", location, "no content")
    else:
        builder.add_message(
            message_id,
            role,
            parts,
            time=coercion.to_datetime(message.get("timestamp")),
            metadata=coercion.drop_empty(
                importId=message_id, model=coercion.to_text(message.get("model"))
            ),
            location=location,
        )
    if omitted and not already_reported:
        builder.omit(omitted)


def _convert_message(message: Mapping[str, Any], message_id: str) -> list[PartDict]:
    """Return the parts of a message.

    Newer versions store the answer of a model as a list of items in `output`. In older ones,
    reasoning and tool calls are HTML in the text.
    """
    output = response_items.convert_items(coercion.to_mappings(message.get("output")), message_id)
    parts = list(output)
    if not any(part["type"] == "text" for part in output):
        content = message.get("content")
        converted = chat_messages.convert_content(content)
        if isinstance(content, str):
            converted = _convert_text(content, message_id)
        # The HTML of reasoning and tool calls repeats the items of the output.
        parts.extend(part for part in converted if not output or part["type"] == "text")
    for file in coercion.to_mappings(message.get("files")):
        parts.extend(_convert_file(file))
    parts.extend(_convert_sources(message))
    if error := message.get("error"):
        reason = coercion.to_mapping(error).get("content", error)
        if reason is not True:
            parts.append({"type": "error", "error": reason})
    return parts


def _convert_text(text: str, message_id: str) -> Iterator[PartDict]:
    """Yield the text between the blocks of HTML, and the parts that the blocks represent."""
    position = 0
    for block in _BLOCK.finditer(text):
        end = text.find(_BLOCK_END, block.end()) if block.start() >= position else -1
        if end < 0:
            continue
        yield from _build_text_part(text[position : block.start()])
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(block[2])}
        body = html.unescape(_SUMMARY.sub("", text[block.end() : end])).strip()
        yield _convert_block(block[1], attributes, body, f"{message_id}:{block.start()}")
        position = end + len(_BLOCK_END)
    yield from _build_text_part(text[position:])


def _build_text_part(text: str) -> Iterator[PartDict]:
    if text.strip():
        yield {"type": "text", "text": text.strip()}


def _convert_block(kind: str, attributes: Mapping[str, str], body: str, block_id: str) -> PartDict:
    if kind == "reasoning":
        lines = (line.removeprefix(">").removeprefix(" ") for line in body.splitlines())
        return chat_messages.build_reasoning_part("\n".join(lines))
    name, args = attributes.get("name") or "tool", _parse_twice(attributes.get("arguments", ""))
    result = attributes.get("result", body)
    if kind == "code_interpreter":
        name, args, result = kind, {"input": _CODE.sub("", body)}, attributes.get("output", "")
    call_id = attributes.get("id") or block_id
    part = normalization.build_call_part(call_id, name, chat_messages.parse_arguments(args))
    if attributes.get("done") != "false":
        normalization.set_result(part["toolInvocation"], _parse_twice(result))
    return part


def _parse_twice(text: str) -> Any:
    """Parse JSON that may have been encoded twice."""
    value = coercion.parse_json(text)
    if isinstance(value, str):
        inner = coercion.parse_json(value)
        return inner if isinstance(inner, Mapping | list) else value
    return text if value is None else value


def _convert_file(file: Mapping[str, Any]) -> Iterator[PartDict]:
    inner = coercion.to_mapping(file.get("file"))
    name = coercion.to_text(file.get("name")) or coercion.to_text(inner.get("filename"))
    url = coercion.to_text(file.get("url"))
    if file.get("type") == "image" and url:
        yield {"type": "image", "image": url, **coercion.drop_empty(filename=name)}
        return
    file_id = coercion.to_text(file.get("id")) or coercion.to_text(inner.get("id"))
    meta = coercion.to_mapping(inner.get("meta"))
    mime_type = coercion.to_text(meta.get("content_type"))
    if name or file_id or url:
        yield build_upload_part(name or file_id or url, mime_type, id=file_id, url=url)


def _convert_sources(message: Mapping[str, Any]) -> Iterator[PartDict]:
    """Yield a source part for each page or document that the answer is based on."""
    pages: dict[str, tuple[str, str]] = {}
    for entry in coercion.to_mappings(message.get("sources", message.get("citations"))):
        source = coercion.to_mapping(entry.get("source"))
        name, url = (coercion.to_text(source.get(key)) for key in ("name", "url"))
        for details in coercion.to_mappings(entry.get("metadata")) or [{}]:
            address = coercion.to_text(details.get("source")) or url or name
            title = coercion.to_text(details.get("title")) or name
            is_url = address.startswith(("http://", "https://"))
            if address or title:
                pages.setdefault(address or title, (address if is_url else "", title or address))
    return (build_source_part(url, title) for url, title in pages.values())
