"""Read messages of OpenAI's chat API: requests, batch files and fine-tuning files."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import chat_messages, coercion
from mastra_memory.importers.conversation import ConversationBuilder
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

NAME = "openai"
KEEPS_IDS = False


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
        chat_messages.add_message(
            builder, str(index), coercion.to_mapping(message), f"{location} message {index}"
        )
    metadata = {
        **coercion.to_mapping(record.get("metadata")),
        **build_origin_metadata(NAME, source_id),
    }
    return builder.build_items(title=coercion.to_text(record.get("title")), metadata=metadata)
