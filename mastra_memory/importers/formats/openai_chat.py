"""Chat messages of OpenAI: requests, batch and fine-tuning files, `{messages: [...]}`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.content import parts
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import NOT_STORED, Transcript
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import items_of
from mastra_memory.importers.records import Item, LeftOut, Owner, content_hash, derived_id, origin

NAME = "openai"
KEEPS_IDS = False

_RESULTS = frozenset({"tool", "function"})


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    messages = _messages(record)
    return isinstance(messages, list) and all("role" in m for m in coercion.objects(messages)[:1])


def _messages(record: Mapping[str, Any]) -> Any:
    """The messages of a record, or of the request that a batch file wraps."""
    return record.get("messages", coercion.mapping(record.get("body")).get("messages"))


def read(files: Sequence[SourceFile], owner: Owner) -> Iterator[Item]:
    """A thread for each record.

    Turns follow each other by a millisecond from `created` on, or from the time of the file. A
    record's identity is all it says, so that one that is repeated is there already.
    """
    for file in files:
        yield from items_of(file, partial(_conversation, file, owner))


def _conversation(
    file: SourceFile, owner: Owner, record: Mapping[str, Any], where: str
) -> Iterator[Item]:
    messages = _messages(record)
    if not isinstance(messages, list):
        raise InvalidInput("no list of messages")
    given_id = coercion.text(record.get("id")) or coercion.text(record.get("custom_id"))
    content = content_hash(messages)
    resource_id = owner.of(coercion.text(record.get("user")) or given_id or content)
    start = coercion.moment(record.get("created")) or file.modified
    thread_id = derived_id(NAME, resource_id, given_id, content)
    transcript = Transcript(thread_id, resource_id, start, where)
    for index, message in enumerate(messages):
        _add(transcript, str(index), coercion.mapping(message), f"{where} message {index}")
    metadata = {**coercion.mapping(record.get("metadata")), **origin(NAME, given_id)}
    return transcript.items(title=coercion.text(record.get("title")), metadata=metadata)


def _add(transcript: Transcript, key: str, message: Mapping[str, Any], where: str) -> None:
    role = coercion.text(message.get("role"))
    if role in NOT_STORED:
        transcript.leave_out(LeftOut("messages", "skipped", where, f"role {role}"))
    elif role in _RESULTS:
        _add_result(transcript, key, message, where)
    elif role in ("user", "assistant"):
        said = [*_content(message.get("content")), *_refusal(message), *_calls(key, message)]
        if said:
            metadata = coercion.present(name=coercion.text(message.get("name")))
            transcript.add(key, role, said, metadata=metadata, where=where)
        else:
            transcript.leave_out(LeftOut("messages", "skipped", where, "says nothing"))
    else:
        reason = f"unknown role {role[:40]}"
        transcript.leave_out(LeftOut("messages", "refused", where, reason))


def _add_result(transcript: Transcript, key: str, message: Mapping[str, Any], where: str) -> None:
    result = _result(message.get("content"))
    call_id, tool = coercion.text(message.get("tool_call_id")), coercion.text(message.get("name"))
    if transcript.answer(result, call_id=call_id, tool=tool):
        transcript.leave_out(LeftOut("messages", "joined", where, "result of a tool call"))
    else:
        part = parts.lone_result(call_id, tool or "tool", result)
        transcript.add(key, "tool", [part], where=where)


def _result(content: Any) -> Any:
    """What a tool answered: JSON where the text is an object or a list."""
    if isinstance(content, list):
        content = "\n".join(coercion.text(part.get("text")) for part in coercion.objects(content))
    value = coercion.json_or_none(content) if isinstance(content, str) else content
    return value if isinstance(value, Mapping | list) else content


def _content(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield {"type": "text", "text": part}
            elif isinstance(part, Mapping):
                yield _part(part)


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = coercion.text(part.get("type"))
    match kind:
        case "text" | "input_text" | "output_text":
            return {"type": "text", "text": coercion.text(part.get("text"))}
        case "image_url" | "input_image":
            given = part.get("image_url")
            address = coercion.mapping(given).get("url", given)
            return {"type": "image", "image": coercion.text(address)}
        case "input_audio":
            audio = coercion.mapping(part.get("input_audio"))
            mime_type = f"audio/{coercion.text(audio.get('format')) or 'wav'}"
            return {"type": "file", "data": coercion.text(audio.get("data")), "mimeType": mime_type}
        case "file":
            file = coercion.mapping(part.get("file"))
            data = coercion.text(file.get("file_data")) or coercion.text(file.get("file_id"))
            names = coercion.present(filename=coercion.text(file.get("filename")))
            return {"type": "file", "data": data, **names}
        case "refusal":
            return {"type": "text", "text": coercion.text(part.get("refusal"))}
    return {"type": f"data-openai-{kind or 'part'}", "data": dict(part)}


def _refusal(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if refusal := coercion.text(message.get("refusal")):
        yield {"type": "text", "text": refusal}


def _calls(key: str, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Tool calls, and the single function call of older files."""
    calls = coercion.objects(message.get("tool_calls"))
    if isinstance(message.get("function_call"), Mapping):
        calls = [*calls, {"id": f"call_{key}", "function": message["function_call"]}]
    for index, call in enumerate(calls):
        function = coercion.mapping(call.get("function", call.get("custom")))
        given = function.get("arguments", function.get("input"))
        parsed = coercion.json_or_none(given) if isinstance(given, str) else given
        args = parsed if isinstance(parsed, Mapping) else {"input": given} if given else {}
        call_id = coercion.text(call.get("id")) or f"call_{key}_{index}"
        yield parts.tool_invocation(call_id, coercion.text(function.get("name")) or "tool", args)
