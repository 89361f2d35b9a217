"""ChatGPT data exports: conversations as trees of messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
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


def detect(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    return isinstance(record.get("mapping"), Mapping)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """A thread for the current path of each conversation, a clone for each edited branch.

    Of an export only its conversations are read (in one file or several); a single file is taken
    whatever its name.
    """
    named = [file for file in files if _CONVERSATION_FILE.fullmatch(file.basename)]
    user_id = next((_read_user_id(file) for file in files if file.basename == "user.json"), NAME)
    for file in named or files:
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
    given_id = coercion.to_text(record.get("conversation_id")) or coercion.to_text(record.get("id"))
    started = coercion.to_datetime(record.get("create_time")) or file.modified
    conversation = SourceConversation(
        source=NAME,
        id=given_id or hash_content(nodes),
        resource_id=resource_id,
        title=coercion.to_text(record.get("title")),
        metadata=build_origin_metadata(
            NAME, given_id, model=coercion.to_text(record.get("default_model_slug"))
        ),
        created_at=started,
        updated_at=coercion.to_datetime(record.get("update_time")) or started,
        location=location,
    )
    known = dict(sorted(_iter_nodes(nodes), key=lambda named: _get_time(named[1])))
    parents = {name: coercion.to_text(node.get("parent")) or None for name, node in known.items()}
    add = partial(_add_message, known, location)
    return build_threads(conversation, parents, coercion.to_text(record.get("current_node")), add)


def _iter_nodes(nodes: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((name, coercion.to_mapping(node)) for name, node in nodes.items())


def _get_time(node: Mapping[str, Any]) -> datetime:
    """When it was made; those that do not say it come last."""
    given = coercion.to_mapping(node.get("message")).get("create_time")
    return coercion.to_datetime(given) or datetime.max.replace(tzinfo=UTC)


def _add_message(
    nodes: Mapping[str, Mapping[str, Any]],
    location: str,
    builder: ConversationBuilder,
    name: str,
    reported: bool,
) -> None:
    message = coercion.to_mapping(nodes[name].get("message"))
    if not message:  # the root has none
        return
    location = f"{location} node {name}"
    omitted = _find_omission(message, location) or _convert_message(
        builder, name, message, location
    )
    if omitted and not reported:
        builder.omit(omitted)


def _find_omission(message: Mapping[str, Any], location: str) -> OmittedRecord | None:
    """Why the message is no part of the conversation."""
    role = _get_role(message)
    if role in INSTRUCTION_ROLES:
        return OmittedRecord("messages", "skipped", location, f"role {role}")
    if _get_content_type(message) in _INSTRUCTION_KINDS:
        return OmittedRecord("messages", "skipped", location, "instructions")
    if (
        coercion.to_mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
        is True
    ):
        return OmittedRecord("messages", "skipped", location, "hidden in the conversation")
    if role not in ("user", "assistant", "tool"):
        return OmittedRecord("messages", "refused", location, f"unknown role {role[:40]}")
    return None


def _convert_message(
    builder: ConversationBuilder, name: str, message: Mapping[str, Any], location: str
) -> OmittedRecord | None:
    content = coercion.to_mapping(message.get("content"))
    role, tool = _get_role(message), coercion.to_text(message.get("recipient"))
    model = coercion.to_text(coercion.to_mapping(message.get("metadata")).get("model_slug"))
    further: list[dict[str, Any]] = []
    if role == "tool":
        author = coercion.to_text(coercion.to_mapping(message.get("author")).get("name")) or "tool"
        result, further = _convert_result(content)
        if builder.add_tool_result(result, tool=author, further=further):
            return OmittedRecord("messages", "joined", location, "result of a tool call")
        said = [normalization.build_result_part(name, author, result), *further]
    elif (
        role == "assistant"
        and tool not in ("", "all")
        and _get_content_type(message) not in _REASONING_KINDS
    ):
        said = [normalization.build_call_part(name, tool, _parse_args(content))]
    else:
        said = _convert_content(content)
    if not said:
        return OmittedRecord("messages", "skipped", location, "says nothing")
    builder.add_message(
        name,
        role,
        said,
        moment=coercion.to_datetime(message.get("create_time")),
        metadata=coercion.drop_empty(importId=name, model=model),
        location=location,
    )
    return None


def _get_role(message: Mapping[str, Any]) -> str:
    return coercion.to_text(coercion.to_mapping(message.get("author")).get("role"))


def _get_content_type(message: Mapping[str, Any]) -> str:
    return coercion.to_text(coercion.to_mapping(message.get("content")).get("content_type"))


def _parse_args(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a tool is called with: JSON where it is, else the text under `input`."""
    said = _get_raw_text(content)
    value = coercion.parse_json(said)
    language = coercion.to_text(content.get("language"))
    known = "" if language == "unknown" else language
    return value if isinstance(value, Mapping) else coercion.drop_empty(input=said, language=known)


_REASONING_KINDS = frozenset({"thoughts", "reasoning_recap"})

Part = dict[str, Any]


def _convert_content(content: Mapping[str, Any]) -> list[Part]:
    """The parts of a message; nothing for one that says nothing. Unknown kinds are kept whole."""
    kind = coercion.to_text(content.get("content_type"))
    match kind:
        case "text" | "multimodal_text":
            return _convert_parts(content)
        case "code" if coercion.to_text(content.get("text")).strip():
            language = coercion.to_text(content.get("language")).replace("unknown", "")
            return [_text_part(f"```{language}\n{content['text']}\n```")]
        case "thoughts":
            return [
                _reasoning_part(_format_thought(t))
                for t in coercion.to_mappings(content.get("thoughts"))
            ]
        case "reasoning_recap":
            recap = coercion.to_text(content.get("content"))
            return [_reasoning_part(recap)] if recap else []
        case "tether_quote":
            return [_source_part(content), *_text_parts(content.get("text"))]
        case "execution_output" | "code" | "computer_output" if "text" in content:
            return _text_parts(content.get("text"))
        case "tether_browsing_display":
            return _text_parts(content.get("result"))
        case "system_error":
            return [{"type": "error", "error": dict(content)}]
    return [{"type": f"data-chatgpt-{kind or 'content'}", "data": dict(content)}] if content else []


def _convert_result(content: Mapping[str, Any]) -> tuple[Any, list[Part]]:
    """What a tool answered, and the pictures and the like that it made."""
    said = _convert_content(content)
    others = [part for part in said if part["type"] != "text"]
    texts = [part["text"] for part in said if part["type"] == "text"]
    return "\n".join(texts), others


def _get_raw_text(content: Mapping[str, Any]) -> str:
    """The bare text of a message to a tool."""
    if isinstance(content.get("text"), str):
        return str(content["text"])
    given = content.get("parts")
    return "\n".join(p for p in given if isinstance(p, str)) if isinstance(given, list) else ""


def _convert_parts(content: Mapping[str, Any]) -> list[Part]:
    given = content.get("parts")
    made: list[Part] = []
    for part in given if isinstance(given, list) else []:
        if isinstance(part, str):
            made.extend(_text_parts(part))
        elif isinstance(part, Mapping):
            made.extend(_convert_part(part))
    return made


def _convert_part(part: Mapping[str, Any]) -> list[Part]:
    kind = coercion.to_text(part.get("content_type"))
    address = coercion.to_text(part.get("asset_pointer"))
    match kind:
        case "image_asset_pointer" if address:
            facts = {key: part.get(key) for key in ("width", "height", "size_bytes")}
            return [_add_metadata({"type": "image", "image": address}, facts)]
        case "audio_transcription":
            return _text_parts(part.get("text"))
        case "audio_asset_pointer" if address:
            mime_type = f"audio/{coercion.to_text(part.get('format')) or 'wav'}"
            return [{"type": "file", "data": address, "mimeType": mime_type}]
    return [{"type": f"data-chatgpt-{kind or 'part'}", "data": dict(part)}]


def _add_metadata(part: Part, facts: Mapping[str, Any]) -> Part:
    known = coercion.drop_empty(**facts)
    return {**part, "metadata": known} if known else part


def _text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def _text_parts(value: Any) -> list[Part]:
    text = coercion.to_text(value)
    return [_text_part(text)] if text.strip() else []


def _reasoning_part(text: str) -> Part:
    return {"type": "reasoning", "reasoning": text, "details": [{"type": "text", "text": text}]}


def _format_thought(thought: Mapping[str, Any]) -> str:
    said = (coercion.to_text(thought.get(key)) for key in ("summary", "content"))
    return "\n".join(text for text in said if text)


def _source_part(content: Mapping[str, Any]) -> Part:
    source = {"sourceType": "url", "url": coercion.to_text(content.get("url"))}
    return {"type": "source", "source": {**source, "title": coercion.to_text(content.get("title"))}}
