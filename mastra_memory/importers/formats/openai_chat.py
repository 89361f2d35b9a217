"""Chat messages of OpenAI: requests, batch and fine-tuning files, `{messages: [...]}`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import INSTRUCTION_ROLES, ConversationBuilder
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
    """Whether a record looks like this format's."""
    messages = _get_messages(record)
    return isinstance(messages, list) and all(
        "role" in m for m in coercion.to_mappings(messages)[:1]
    )


def _get_messages(record: Mapping[str, Any]) -> Any:
    """The messages of a record, or of the request that a batch file wraps."""
    return record.get("messages", coercion.to_mapping(record.get("body")).get("messages"))


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """A thread for each record.

    Turns follow each other by a millisecond from `created` on, or from the time of the file. A
    record's identity is all it says, so that one that is repeated is there already.
    """
    for file in files:
        yield from read_items(file, partial(_read_conversation, file, resources))


def _read_conversation(
    file: SourceFile, resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    messages = _get_messages(record)
    if not isinstance(messages, list):
        raise InvalidInput("no list of messages")
    given_id = coercion.to_text(record.get("id")) or coercion.to_text(record.get("custom_id"))
    content = hash_content(messages)
    resource_id = resources.resolve(coercion.to_text(record.get("user")) or given_id or content)
    start = coercion.to_datetime(record.get("created")) or file.modified
    thread_id = derive_id(NAME, resource_id, given_id, content)
    builder = ConversationBuilder(thread_id, resource_id, start, location)
    for index, message in enumerate(messages):
        _add_message(
            builder, str(index), coercion.to_mapping(message), f"{location} message {index}"
        )
    metadata = {
        **coercion.to_mapping(record.get("metadata")),
        **build_origin_metadata(NAME, given_id),
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
        said = [
            *_convert_content(message.get("content")),
            *_convert_refusal(message),
            *_convert_tool_calls(key, message),
        ]
        if said:
            metadata = coercion.drop_empty(name=coercion.to_text(message.get("name")))
            builder.add_message(key, role, said, metadata=metadata, location=location)
        else:
            builder.omit(OmittedRecord("messages", "skipped", location, "says nothing"))
    else:
        reason = f"unknown role {role[:40]}"
        builder.omit(OmittedRecord("messages", "refused", location, reason))


def _add_result(
    builder: ConversationBuilder, key: str, message: Mapping[str, Any], location: str
) -> None:
    result = _convert_result(message.get("content"))
    call_id, tool = (
        coercion.to_text(message.get("tool_call_id")),
        coercion.to_text(message.get("name")),
    )
    if builder.add_tool_result(result, call_id=call_id, tool=tool):
        builder.omit(OmittedRecord("messages", "joined", location, "result of a tool call"))
    else:
        part = normalization.build_result_part(call_id, tool or "tool", result)
        builder.add_message(key, "tool", [part], location=location)


def _convert_result(content: Any) -> Any:
    """What a tool answered: JSON where the text is an object or a list."""
    if isinstance(content, list):
        content = "\n".join(
            coercion.to_text(part.get("text")) for part in coercion.to_mappings(content)
        )
    value = coercion.parse_json(content) if isinstance(content, str) else content
    return value if isinstance(value, Mapping | list) else content


def _convert_content(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield {"type": "text", "text": part}
            elif isinstance(part, Mapping):
                yield _convert_part(part)


def _convert_part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = coercion.to_text(part.get("type"))
    match kind:
        case "text" | "input_text" | "output_text":
            return {"type": "text", "text": coercion.to_text(part.get("text"))}
        case "image_url" | "input_image":
            given = part.get("image_url")
            address = coercion.to_mapping(given).get("url", given)
            return {"type": "image", "image": coercion.to_text(address)}
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
            names = coercion.drop_empty(filename=coercion.to_text(file.get("filename")))
            return {"type": "file", "data": data, **names}
        case "refusal":
            return {"type": "text", "text": coercion.to_text(part.get("refusal"))}
    return {"type": f"data-openai-{kind or 'part'}", "data": dict(part)}


def _convert_refusal(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if refusal := coercion.to_text(message.get("refusal")):
        yield {"type": "text", "text": refusal}


def _convert_tool_calls(key: str, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Tool calls, and the single function call of older files."""
    calls = coercion.to_mappings(message.get("tool_calls"))
    if isinstance(message.get("function_call"), Mapping):
        calls = [*calls, {"id": f"call_{key}", "function": message["function_call"]}]
    for index, call in enumerate(calls):
        function = coercion.to_mapping(call.get("function", call.get("custom")))
        given = function.get("arguments", function.get("input"))
        parsed = coercion.parse_json(given) if isinstance(given, str) else given
        args = parsed if isinstance(parsed, Mapping) else {"input": given} if given else {}
        call_id = coercion.to_text(call.get("id")) or f"call_{key}_{index}"
        yield normalization.build_call_part(
            call_id, coercion.to_text(function.get("name")) or "tool", args
        )
