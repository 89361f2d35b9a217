"""Read messages of OpenAI's chat API: requests, batch files and fine-tuning files."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import INSTRUCTION_ROLES, ConversationBuilder, PartDict
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

NAME = "openai"
KEEPS_IDS = False

_RESULT_ROLES = frozenset({"tool", "function"})


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a list of messages with roles."""
    messages = _get_messages(record)
    return isinstance(messages, list) and all(
        "role" in m for m in coercion.to_mappings(messages)[:1]
    )


def _get_messages(record: Mapping[str, Any]) -> Any:
    """Return the messages of a record, or of the request inside a record of a batch file."""
    return record.get("messages", coercion.to_mapping(record.get("body")).get("messages"))


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each record.

    Messages have no times: the first one gets the time `created` of the record, or the time of
    the file, and each further one is a millisecond later. The thread id depends on the content of
    all messages, so that a repeated record is stored once.
    """
    for file in files:
        yield from read_items(file, partial(_read_conversation, file, resources))


def _read_conversation(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    messages = _get_messages(record)
    if not isinstance(messages, list):
        raise InvalidInput("no list of messages")
    source_id = coercion.to_text(record.get("id")) or coercion.to_text(record.get("custom_id"))
    content_hash = hash_content(messages)
    resource_id = resources.resolve(
        coercion.to_text(record.get("user")) or source_id or content_hash
    )
    start = coercion.to_datetime(record.get("created")) or file.modified
    thread_id = derive_id(NAME, resource_id, source_id, content_hash)
    builder = ConversationBuilder(thread_id, resource_id, start, location)
    for index, message in enumerate(messages):
        _add_message(
            builder, str(index), coercion.to_mapping(message), f"{location} message {index}"
        )
    metadata = {
        **coercion.to_mapping(record.get("metadata")),
        **build_origin_metadata(NAME, source_id),
    }
    return builder.build_items(title=coercion.to_text(record.get("title")), metadata=metadata)


def _add_message(
    builder: ConversationBuilder, key: str, message: Mapping[str, Any], location: str
) -> None:
    role = coercion.to_text(message.get("role"))
    if role in INSTRUCTION_ROLES:
        builder.omit(OmittedRecord("messages", "skipped", location, f"role {role}"))
    elif role in _RESULT_ROLES:
        _add_result(builder, key, message, location)
    elif role in ("user", "assistant"):
        parts = [
            *_convert_content(message.get("content")),
            *_convert_refusal(message),
            *_convert_tool_calls(key, message),
        ]
        if parts:
            metadata = coercion.drop_empty(name=coercion.to_text(message.get("name")))
            builder.add_message(key, role, parts, metadata=metadata, location=location)
        else:
            builder.omit(OmittedRecord("messages", "skipped", location, "no content"))
    else:
        reason = f"unknown role {role[:40]}"
        builder.omit(OmittedRecord("messages", "refused", location, reason))


def _add_result(
    builder: ConversationBuilder, key: str, message: Mapping[str, Any], location: str
) -> None:
    result = _convert_result(message.get("content"))
    call_id = coercion.to_text(message.get("tool_call_id"))
    tool = coercion.to_text(message.get("name"))
    if builder.add_tool_result(result, call_id=call_id, tool=tool):
        builder.omit(OmittedRecord("messages", "joined", location, "result of a tool call"))
    else:
        part = normalization.build_result_part(call_id, tool or "tool", result)
        builder.add_message(key, "tool", [part], location=location)


def _convert_result(content: Any) -> Any:
    """Return the result of a tool: the JSON value if it is an object or a list, else the text."""
    if isinstance(content, list):
        content = "\n".join(
            coercion.to_text(part.get("text")) for part in coercion.to_mappings(content)
        )
    value = coercion.parse_json(content) if isinstance(content, str) else content
    return value if isinstance(value, Mapping | list) else content


def _convert_content(content: Any) -> Iterator[PartDict]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield {"type": "text", "text": part}
            elif isinstance(part, Mapping):
                yield _convert_part(part)


def _convert_part(part: Mapping[str, Any]) -> PartDict:
    kind = coercion.to_text(part.get("type"))
    match kind:
        case "text" | "input_text" | "output_text":
            return {"type": "text", "text": coercion.to_text(part.get("text"))}
        case "image_url" | "input_image":
            value = part.get("image_url")
            url = coercion.to_mapping(value).get("url", value)
            return {"type": "image", "image": coercion.to_text(url)}
        case "input_audio":
            audio = coercion.to_mapping(part.get("input_audio"))
            mime_type = f"audio/{coercion.to_text(audio.get('format')) or 'wav'}"
            return {
                "type": "file",
                "data": coercion.to_text(audio.get("data")),
                "mimeType": mime_type,
            }
        case "file":
            file = coercion.to_mapping(part.get("file"))
            data = coercion.to_text(file.get("file_data")) or coercion.to_text(file.get("file_id"))
            extra = coercion.drop_empty(filename=coercion.to_text(file.get("filename")))
            return {"type": "file", "data": data, **extra}
        case "refusal":
            return {"type": "text", "text": coercion.to_text(part.get("refusal"))}
    return {"type": f"data-openai-{kind or 'part'}", "data": dict(part)}


def _convert_refusal(message: Mapping[str, Any]) -> Iterator[PartDict]:
    if refusal := coercion.to_text(message.get("refusal")):
        yield {"type": "text", "text": refusal}


def _convert_tool_calls(key: str, message: Mapping[str, Any]) -> Iterator[PartDict]:
    """Yield the tool calls, and the `function_call` of older files."""
    calls = coercion.to_mappings(message.get("tool_calls"))
    if isinstance(message.get("function_call"), Mapping):
        calls = [*calls, {"id": f"call_{key}", "function": message["function_call"]}]
    for index, call in enumerate(calls):
        function = coercion.to_mapping(call.get("function", call.get("custom")))
        arguments = function.get("arguments", function.get("input"))
        value = coercion.parse_json(arguments) if isinstance(arguments, str) else arguments
        args = value if isinstance(value, Mapping) else {"input": arguments} if arguments else {}
        call_id = coercion.to_text(call.get("id")) or f"call_{key}_{index}"
        yield normalization.build_call_part(
            call_id, coercion.to_text(function.get("name")) or "tool", args
        )
