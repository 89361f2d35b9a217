"""Read requests and answers of Anthropic's Messages API, such as batch files and logs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import chat_messages, claude_blocks, coercion
from mastra_memory.importers.conversation import INSTRUCTION_ROLES, ConversationBuilder
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.grouping import RecordGroups
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

NAME = "anthropic"
KEEPS_IDS = False

Json = Mapping[str, Any]

_OWN_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use"}
)


def detect(record: Json) -> bool:
    """Return whether a record is a request or an answer of Anthropic's API.

    A request with texts only looks like one of OpenAI's API, unless it has a system prompt of its
    own or the name of a model.
    """
    if _find_answer(record):
        return True
    request = _find_request(record)
    if not isinstance(request.get("messages"), list):
        return False
    has_own_keys = "system" in request or "anthropic_version" in request
    is_claude = coercion.to_text(request.get("model")).startswith(("claude", "anthropic"))
    blocks = (
        block
        for message in coercion.to_mappings(request.get("messages"))
        for block in coercion.to_mappings(message.get("content"))
    )
    return has_own_keys or is_claude or any(map(_is_own_block, blocks))


def _is_own_block(block: Json) -> bool:
    is_image = block.get("type") == "image" and isinstance(block.get("source"), Mapping)
    return is_image or coercion.to_text(block.get("type")) in _OWN_BLOCKS


def _find_request(record: Json) -> Json:
    """Return the request in a record: itself, or that of a batch file or a log."""
    for key in ("params", "request", "body"):
        inner = coercion.to_mapping(record.get(key))
        if "messages" in inner:
            return inner
    return record


def _find_answer(record: Json) -> Json:
    """Return the message of the model in a record, or an empty mapping."""
    result = coercion.to_mapping(record.get("result"))
    for answer in (record, record.get("response"), result.get("message"), record.get("message")):
        answer = coercion.to_mapping(answer)
        if answer.get("type") == "message" and answer.get("role") == "assistant":
            return answer if isinstance(answer.get("content"), list) else {}
    return {}


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each request, with its answer.

    The requests and the results of a batch are in different files, and have the same `custom_id`.
    Messages have no times: the first one gets the time of the file, and each further one is a
    millisecond later.
    """
    with closing(RecordGroups()) as groups:
        for file in files:
            yield from read_items(file, partial(_add_record, groups, file))
        for key, entries in groups.iter_groups():
            yield from _build_thread(key, entries, resources)


def _add_record(groups: RecordGroups, file: SourceFile, record: Json, location: str) -> None:
    request, answer = _find_request(record), _find_answer(record)
    messages = request.get("messages")
    if not isinstance(messages, list) and not answer:
        result = coercion.to_mapping(record.get("result"))
        if result.get("type") in ("errored", "canceled", "expired"):
            raise InvalidInput(f"the batch has no answer to the request: {result['type']}")
        raise InvalidInput("no list of messages")
    metadata = coercion.to_mapping(request.get("metadata"))
    custom_id = coercion.to_text(record.get("custom_id"))
    entry = {
        "messages": messages if isinstance(messages, list) else [],
        "system": "system" in request,
        "answer": answer,
        "user": coercion.to_text(metadata.get("user_id")),
        "source_id": custom_id or coercion.to_text(record.get("id")),
        "start": (coercion.to_datetime(record.get("created_at")) or file.modified).timestamp(),
        "location": location,
    }
    if not groups.add(custom_id or hash_content([entry["source_id"], messages, answer]), entry):
        raise InvalidInput("the conversation is too long")


def _build_thread(
    key: str, entries: Sequence[Any], resources: ResourceMapping
) -> Iterator[SourceItem]:
    ordered = sorted(entries, key=lambda entry: not entry["messages"])  # results after requests
    source_id = next(filter(None, (entry["source_id"] for entry in ordered)), "")
    users = (entry["user"] for entry in ordered)
    resource_id = resources.resolve(next(filter(None, users), source_id or key))
    start = coercion.to_datetime(ordered[0]["start"])
    assert start is not None
    builder = ConversationBuilder(
        derive_id(NAME, resource_id, key), resource_id, start, ordered[0]["location"]
    )
    for number, entry in enumerate(ordered):
        if entry["system"]:
            builder.omit(OmittedRecord("messages", "skipped", entry["location"], "role system"))
        messages = [*entry["messages"], *([entry["answer"]] if entry["answer"] else [])]
        for index, message in enumerate(messages):
            location = f"{entry['location']} message {index}"
            _add_message(builder, f"{number}:{index}", coercion.to_mapping(message), location)
    models = (coercion.to_text(entry["answer"].get("model")) for entry in ordered)
    model = next(filter(None, models), "")
    return builder.build_items(metadata=build_origin_metadata(NAME, source_id, model=model))


def _add_message(builder: ConversationBuilder, key: str, message: Json, location: str) -> None:
    """Add a message. Results of tools, which users' messages contain, are stored in their calls."""
    name = coercion.to_text(message.get("role"))
    role, content = chat_messages.get_role(name), message.get("content")
    if role in INSTRUCTION_ROLES:
        builder.omit(OmittedRecord("messages", "skipped", location, f"role {role}"))
        return
    if role not in ("user", "assistant"):
        reason = f"unknown role {name[:40]}"
        builder.omit(OmittedRecord("messages", "refused", location, reason))
        return
    joined = False
    blocks: list[Any] = []
    for block in content if isinstance(content, list) else []:
        if role == "user" and isinstance(block, Mapping) and claude_blocks.is_result(block):
            if _join_result(builder, block):
                joined = True
                continue
        blocks.append(block)
    parts = claude_blocks.convert_blocks(blocks or content if not joined else blocks, key)
    if parts:
        is_result = all(part["type"] == "tool-invocation" for part in parts)
        builder.add_message(
            key, "tool" if role == "user" and is_result else role, parts, location=location
        )
    elif joined:
        builder.omit(OmittedRecord("messages", "joined", location, "result of a tool call"))
    else:
        builder.omit(OmittedRecord("messages", "skipped", location, "no content"))


def _join_result(builder: ConversationBuilder, block: Json) -> bool:
    call_id = coercion.to_text(block.get("tool_use_id"))
    result = claude_blocks.convert_result(block.get("content"))
    failed = block.get("is_error") is True
    return bool(call_id) and builder.add_tool_result(result, call_id=call_id, failed=failed)
