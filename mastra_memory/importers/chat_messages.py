"""Convert messages in the form of OpenAI's chat API, which many programs write and log."""

from collections.abc import Iterator, Mapping
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import INSTRUCTION_ROLES, ConversationBuilder, PartDict
from mastra_memory.importers.records import OmittedRecord

_ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "gpt", "chatgpt", "model", "bot"), "assistant"),
    **dict.fromkeys(("bing", "bard", "claude", "gemini"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}


def get_role(name: str) -> str:
    """Return the role for a name of a role in another program, in any case, or an empty string.

    The names of instructions are returned in lower case.
    """
    name = name.strip().lower()
    return name if name in INSTRUCTION_ROLES else _ROLES.get(name, "")


def add_message(
    builder: ConversationBuilder,
    key: str,
    message: Mapping[str, Any],
    location: str,
    **details: Any,
) -> None:
    """Add a message with a `role` and a `content`, and `tool_calls` or a `tool_call_id`.

    Args:
        builder: The conversation.
        key: Identifies the message in its conversation.
        message: The message.
        location: Where it is in the source.
        details: More arguments of `ConversationBuilder.add_message`.
    """
    name = coercion.to_text(message.get("role"))
    role = get_role(name)
    if role in INSTRUCTION_ROLES:
        builder.omit(OmittedRecord("messages", "skipped", location, f"role {role}"))
    elif role == "tool":
        _add_result(builder, key, message, location, details)
    elif role:
        parts = [
            *_convert_reasoning(message),
            *convert_content(message.get("content")),
            *_convert_refusal(message),
            *_convert_tool_calls(key, message),
        ]
        if parts:
            metadata = coercion.drop_empty(
                name=coercion.to_text(message.get("name")), **details.pop("metadata", {})
            )
            builder.add_message(key, role, parts, metadata=metadata, location=location, **details)
        else:
            builder.omit(OmittedRecord("messages", "skipped", location, "no content"))
    else:
        reason = f"unknown role {name[:40]}"
        builder.omit(OmittedRecord("messages", "refused", location, reason))


def _add_result(
    builder: ConversationBuilder,
    key: str,
    message: Mapping[str, Any],
    location: str,
    details: Mapping[str, Any],
) -> None:
    result = convert_result(message.get("content"))
    call_id = coercion.to_text(message.get("tool_call_id"))
    tool = coercion.to_text(message.get("name"))
    if builder.add_tool_result(result, call_id=call_id, tool=tool):
        builder.omit(OmittedRecord("messages", "joined", location, "result of a tool call"))
    else:
        part = normalization.build_result_part(call_id, tool or "tool", result)
        builder.add_message(key, "tool", [part], location=location, **details)


def convert_result(content: Any) -> Any:
    """Return the result of a tool: the JSON value if it is an object or a list, else the text."""
    if isinstance(content, list):
        content = "\n".join(
            coercion.to_text(part.get("text")) for part in coercion.to_mappings(content)
        )
    value = coercion.parse_json(content) if isinstance(content, str) else content
    return value if isinstance(value, Mapping | list) else content


def convert_content(content: Any) -> Iterator[PartDict]:
    """Yield the parts of a content: a text, or a list of texts and parts."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield {"type": "text", "text": part}
            elif isinstance(part, Mapping):
                yield convert_part(part)


def convert_part(part: Mapping[str, Any]) -> PartDict:
    """Return a part of OpenAI's chat or Responses API in Mastra's format 2.

    A part of another type becomes a data part.
    """
    kind = coercion.to_text(part.get("type"))
    match kind:
        case "text" | "input_text" | "output_text":
            return {"type": "text", "text": coercion.to_text(part.get("text"))}
        case "image_url" | "input_image":
            value = part.get("image_url") or part.get("file_id")
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
        case "file" | "input_file":
            return _convert_file(coercion.to_mapping(part.get("file")) or part)
        case "refusal":
            return {"type": "text", "text": coercion.to_text(part.get("refusal"))}
    return {"type": f"data-openai-{kind or 'part'}", "data": dict(part)}


def _convert_file(file: Mapping[str, Any]) -> PartDict:
    values = (coercion.to_text(file.get(key)) for key in ("file_data", "file_url", "file_id"))
    data = next((value for value in values if value), "")
    extra = coercion.drop_empty(filename=coercion.to_text(file.get("filename")))
    return {"type": "file", "data": data, **extra}


def _convert_reasoning(message: Mapping[str, Any]) -> Iterator[PartDict]:
    for key in ("reasoning_content", "reasoning"):
        text = coercion.to_text(message.get(key))
        if text.strip():
            yield build_reasoning_part(text)
            return


def build_reasoning_part(text: str) -> PartDict:
    """Return a part with the reasoning of a model."""
    return {"type": "reasoning", "reasoning": text, "details": [{"type": "text", "text": text}]}


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
        call_id = coercion.to_text(call.get("id")) or f"call_{key}_{index}"
        yield normalization.build_call_part(
            call_id, coercion.to_text(function.get("name")) or "tool", parse_arguments(arguments)
        )


def parse_arguments(arguments: Any) -> Mapping[str, Any]:
    """Return the arguments of a tool call: an object, or its JSON text; other text as `input`."""
    value = coercion.parse_json(arguments) if isinstance(arguments, str) else arguments
    if isinstance(value, Mapping):
        return value
    return {"input": arguments} if arguments else {}
