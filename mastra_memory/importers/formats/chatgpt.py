"""Read ChatGPT data exports, whose conversations are trees of messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
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
    build_source_part,
    build_upload_part,
)
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.formats.chatgpt_citations import resolve_citations
from mastra_memory.importers.parsing import parse_record, read_items
from mastra_memory.importers.records import (
    ImportNote,
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    hash_content,
)

NAME = "chatgpt"
KEEPS_IDS = False

_CONVERSATION_FILE = re.compile(r"conversations?[-_\d]*\.json")
_INSTRUCTION_KINDS = frozenset({"user_editable_context", "model_editable_context"})
_REASONING_KINDS = frozenset({"thoughts", "reasoning_recap"})


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a conversation of a ChatGPT export."""
    return isinstance(record.get("mapping"), Mapping)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for the current path of each conversation, and a clone for each other path.

    Only the files `conversations*.json` of an export are read, and the others are counted in a
    note. If there is none, all files are read.
    """
    conversation_files = [file for file in files if _CONVERSATION_FILE.fullmatch(file.basename)]
    user_id = next((_read_user_id(file) for file in files if file.basename == "user.json"), NAME)
    for file in files:
        if conversation_files and file not in conversation_files and file.basename != "user.json":
            yield ImportNote(f"files without conversations in {file.name.partition('/')[0]}")
    for file in conversation_files or files:
        yield from read_items(file, partial(_read_conversation, file, resources.resolve(user_id)))


def _read_user_id(file: SourceFile) -> str:
    for raw in file.read_records():
        try:
            return coercion.to_text(parse_record(raw).get("id")) or NAME
        except InvalidInput:
            break
    return NAME


def _read_conversation(
    file: SourceFile, resource_id: str, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    nodes = record.get("mapping")
    if not isinstance(nodes, Mapping):
        raise InvalidInput("no mapping of messages")
    source_id = coercion.to_text(record.get("conversation_id")) or coercion.to_text(
        record.get("id")
    )
    created_at = coercion.to_datetime(record.get("create_time")) or file.modified
    conversation = SourceConversation(
        source=NAME,
        id=source_id or hash_content(nodes),
        resource_id=resource_id,
        title=coercion.to_text(record.get("title")),
        metadata=build_origin_metadata(
            NAME, source_id, model=coercion.to_text(record.get("default_model_slug"))
        ),
        created_at=created_at,
        updated_at=coercion.to_datetime(record.get("update_time")) or created_at,
        location=location,
    )
    ordered = dict(sorted(_iter_nodes(nodes), key=lambda item: _get_time(item[1])))
    parents = {
        node_id: coercion.to_text(node.get("parent")) or None for node_id, node in ordered.items()
    }
    current = coercion.to_text(record.get("current_node"))
    return build_threads(conversation, parents, current, partial(_add_message, ordered, location))


def _iter_nodes(nodes: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((node_id, coercion.to_mapping(node)) for node_id, node in nodes.items())


def _get_time(node: Mapping[str, Any]) -> datetime:
    """Return when the message was created, or the latest possible time if it is unknown."""
    created_at = coercion.to_mapping(node.get("message")).get("create_time")
    return coercion.to_datetime(created_at) or datetime.max.replace(tzinfo=UTC)


def _add_message(
    nodes: Mapping[str, Mapping[str, Any]],
    location: str,
    builder: ConversationBuilder,
    node_id: str,
    already_reported: bool,
) -> None:
    message = coercion.to_mapping(nodes[node_id].get("message"))
    if not message:  # the root of the tree
        return
    location = f"{location} node {node_id}"
    omitted = _find_omission(message, location) or _convert_message(
        builder, node_id, message, location
    )
    if omitted and not already_reported:
        builder.omit(omitted)


def _find_omission(message: Mapping[str, Any], location: str) -> OmittedRecord | None:
    """Return why the message is not part of the conversation, or None if it is."""
    role = _get_role(message)
    if role in INSTRUCTION_ROLES:
        return OmittedRecord("messages", "skipped", location, f"role {role}")
    if _get_content_type(message) in _INSTRUCTION_KINDS:
        return OmittedRecord("messages", "skipped", location, "instructions")
    metadata = coercion.to_mapping(message.get("metadata"))
    if metadata.get("is_visually_hidden_from_conversation") is True:
        return OmittedRecord("messages", "skipped", location, "hidden in the conversation")
    if role not in ("user", "assistant", "tool"):
        return OmittedRecord("messages", "refused", location, f"unknown role {role[:40]}")
    return None


def _convert_message(
    builder: ConversationBuilder, node_id: str, message: Mapping[str, Any], location: str
) -> OmittedRecord | None:
    content = coercion.to_mapping(message.get("content"))
    metadata = coercion.to_mapping(message.get("metadata"))
    role, tool = _get_role(message), coercion.to_text(message.get("recipient"))
    extra_parts: list[PartDict] = []
    if role == "tool":
        author = coercion.to_text(coercion.to_mapping(message.get("author")).get("name")) or "tool"
        result, extra_parts = _split_result(_convert_message_content(content, metadata, role))
        if builder.add_tool_result(result, tool=author, extra_parts=extra_parts):
            return OmittedRecord("messages", "joined", location, "result of a tool call")
        parts = [normalization.build_result_part(node_id, author, result), *extra_parts]
    elif (
        role == "assistant"
        and tool not in ("", "all")
        and _get_content_type(message) not in _REASONING_KINDS
    ):
        parts = [normalization.build_call_part(node_id, tool, _parse_args(content))]
    else:
        parts = _convert_message_content(content, metadata, role)
    if not parts:
        return OmittedRecord("messages", "skipped", location, "no content")
    builder.add_message(
        node_id,
        role,
        parts,
        time=coercion.to_datetime(message.get("create_time")),
        metadata=coercion.drop_empty(
            importId=node_id, model=coercion.to_text(metadata.get("model_slug"))
        ),
        location=location,
    )
    return None


def _get_role(message: Mapping[str, Any]) -> str:
    return coercion.to_text(coercion.to_mapping(message.get("author")).get("role"))


def _get_content_type(message: Mapping[str, Any]) -> str:
    return coercion.to_text(coercion.to_mapping(message.get("content")).get("content_type"))


def _parse_args(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a tool call: an object, or the text under `input`."""
    text = _get_raw_text(content)
    value = coercion.parse_json(text)
    if isinstance(value, Mapping):
        return value
    return coercion.drop_empty(input=text, language=_get_language(content))


def _get_language(content: Mapping[str, Any]) -> str:
    language = coercion.to_text(content.get("language"))
    return "" if language == "unknown" else language


def _convert_message_content(
    content: Mapping[str, Any], metadata: Mapping[str, Any], role: str
) -> list[PartDict]:
    """Return the parts of a message with its citations and the names of its uploads."""
    parts = resolve_citations(_convert_content(content), metadata, role)
    images = {part["image"]: part for part in parts if part["type"] == "image"}
    for upload in coercion.to_mappings(metadata.get("attachments")):
        name, upload_id = coercion.to_text(upload.get("name")), coercion.to_text(upload.get("id"))
        pointers = (f"file-service://{upload_id}", f"sediment://{upload_id}")
        image = next((images[pointer] for pointer in pointers if pointer in images), None)
        if image is not None:
            image.update(coercion.drop_empty(filename=name))
        elif name or upload_id:
            mime_type = upload.get("mimeType") or upload.get("mime_type")
            size = coercion.to_int_or_none(upload.get("size"))
            part = build_upload_part(
                name or upload_id, coercion.to_text(mime_type), id=upload_id, size=size
            )
            parts.append(part)
    return parts


def _convert_content(content: Mapping[str, Any]) -> list[PartDict]:
    """Return the parts of a message. An unknown kind of content becomes a data part."""
    kind = coercion.to_text(content.get("content_type"))
    match kind:
        case "text" | "multimodal_text":
            return _convert_parts(content)
        case "code" if coercion.to_text(content.get("text")).strip():
            return [_text_part(f"```{_get_language(content)}\n{content['text']}\n```")]
        case "thoughts":
            return [
                build_reasoning_part(_format_thought(t))
                for t in coercion.to_mappings(content.get("thoughts"))
            ]
        case "reasoning_recap":
            recap = coercion.to_text(content.get("content"))
            return [build_reasoning_part(recap)] if recap else []
        case "tether_quote":
            url, title = (coercion.to_text(content.get(key)) for key in ("url", "title"))
            return [build_source_part(url, title), *_text_parts(content.get("text"))]
        case "execution_output" | "code" | "computer_output" if "text" in content:
            return _text_parts(content.get("text"))
        case "tether_browsing_display":
            return _text_parts(content.get("result"))
        case "system_error":
            return [{"type": "error", "error": dict(content)}]
    return [{"type": f"data-chatgpt-{kind or 'content'}", "data": dict(content)}] if content else []


def _split_result(parts: Sequence[PartDict]) -> tuple[str, list[PartDict]]:
    """Return the text of a tool result, and its other parts, such as images."""
    others = [part for part in parts if part["type"] != "text"]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return "\n".join(texts), others


def _get_raw_text(content: Mapping[str, Any]) -> str:
    """Return the text of a message to a tool, without any markup."""
    if isinstance(content.get("text"), str):
        return str(content["text"])
    return "\n".join(coercion.to_texts(content.get("parts")))


def _convert_parts(content: Mapping[str, Any]) -> list[PartDict]:
    source_parts = content.get("parts")
    parts: list[PartDict] = []
    for part in source_parts if isinstance(source_parts, list) else []:
        if isinstance(part, str):
            parts.extend(_text_parts(part))
        elif isinstance(part, Mapping):
            parts.extend(_convert_part(part))
    return parts


def _convert_part(part: Mapping[str, Any]) -> list[PartDict]:
    kind = coercion.to_text(part.get("content_type"))
    url = coercion.to_text(part.get("asset_pointer"))
    match kind:
        case "image_asset_pointer" if url:
            details = {key: part.get(key) for key in ("width", "height", "size_bytes")}
            return [_add_metadata({"type": "image", "image": url}, details)]
        case "audio_transcription":
            return _text_parts(part.get("text"))
        case "audio_asset_pointer" if url:
            mime_type = f"audio/{coercion.to_text(part.get('format')) or 'wav'}"
            return [{"type": "file", "data": url, "mimeType": mime_type}]
    return [{"type": f"data-chatgpt-{kind or 'part'}", "data": dict(part)}]


def _add_metadata(part: PartDict, values: Mapping[str, Any]) -> PartDict:
    metadata = coercion.drop_empty(**values)
    return {**part, "metadata": metadata} if metadata else part


def _text_part(text: str) -> PartDict:
    return {"type": "text", "text": text}


def _text_parts(value: Any) -> list[PartDict]:
    text = coercion.to_text(value)
    return [_text_part(text)] if text.strip() else []


def _format_thought(thought: Mapping[str, Any]) -> str:
    texts = (coercion.to_text(thought.get(key)) for key in ("summary", "content"))
    return "\n".join(text for text in texts if text)
