"""Extract the fields of a message that a query can name, such as `tool:refundPayment`.

The words of a field are indexed in the same column as the text, each with a prefix that names the
field, as Xapian does with its term prefixes. So a field needs no index of its own, and ordinary
words never match it. The words of errors are indexed a second time without a prefix, because
ordinary words find them too.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mastra_memory.content import part_types
from mastra_memory.content.part_types import FilePart, ReasoningPart, ToolCall
from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.db import json_text
from mastra_memory.search import words

PREFIXES = {
    "tool": words.FIELD_MARK + "t",
    "error": words.FIELD_MARK + "e",
    "file": words.FIELD_MARK + "f",
    "args": words.FIELD_MARK + "a",
    "result": words.FIELD_MARK + "r",
    "reasoning": words.FIELD_MARK + "m",
}
"""The prefix of each field's words."""
HAS_FIELDS = words.FIELD_MARK
"""The `tsquery` that every message with fields matches."""
MAX_FIELD_CHARACTERS = 50_000
"""Characters of all fields of a message that are indexed. A `tsvector` is limited to 1 MB."""
MAX_VALUES = 2_000
"""How many values of a JSON document are read, for example of the result of a tool."""
_ORDER = ("tool", "error", "file", "args", "reasoning", "result")
"""The order in which fields are indexed. What exceeds `MAX_FIELD_CHARACTERS` is cut."""

# JSON without any of these keys has no fields and is not parsed. An escaped key would be missed,
# but the app serializes all stored JSON itself and does not escape keys.
_FIELD_KEYS = re.compile(r'"(?:toolInvocation|reasoning|filename|name)"')
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class MessageWords(NamedTuple):
    """The words of a message, as `words.normalize_words` returns them."""

    text: str
    errors: str
    """Words of tool errors, which are searched with a lower weight than the text."""
    fields: str
    """Words of all fields with their prefixes."""


def split_message(text: str, content_json: str, *, mask: Mask = keep_text) -> MessageWords:
    """Return the words to index of a message.

    Args:
        text: The text of the message.
        content_json: Its content in format 2.
        mask: What is applied to the text and to each value of a field.
    """
    text = words.normalize_words(mask(text))
    if not _FIELD_KEYS.search(content_json):
        return MessageWords(text, "", "")
    values: dict[str, list[str]] = {name: [] for name in _ORDER}
    for name, value in _iter_fields(json_text.loads(content_json)):
        values[name].append(mask(value))
    left = MAX_FIELD_CHARACTERS
    errors, prefixed = "", []
    for name in _ORDER:
        normalized = words.normalize_words("\n".join(values[name])[:left])
        left -= len(normalized)
        if name == "error":
            errors = normalized
        prefixed += [PREFIXES[name] + word for word in normalized.split()]
        if left <= 0:
            break
    if prefixed:
        prefixed.append(HAS_FIELDS)
    return MessageWords(text, errors, " ".join(prefixed))


def _iter_fields(content: Any) -> Iterator[tuple[str, str]]:
    """Yield pairs of a field and one of its values."""
    for part in part_types.iter_parts(content):
        if isinstance(part, ToolCall):
            yield from _iter_call(part)
        elif isinstance(part, ReasoningPart):
            yield "reasoning", part.text
        elif isinstance(part, FilePart):
            yield "file", part.name


def _iter_call(call: ToolCall) -> Iterator[tuple[str, str]]:
    yield "tool", call.name
    # So that `tool:refund` finds `refundPayment`.
    if (split := _CAMEL_CASE.sub(" ", call.name)) != call.name:
        yield "tool", split
    yield from (("args", value) for value in _iter_values(call.args))
    is_error = call.failed or bool(call.error)
    if is_error and call.error != str(call.result):
        yield "error", call.error
    else:
        name = "error" if is_error else "result"
        yield from ((name, value) for value in _iter_values(call.result))


def _iter_values(value: Any) -> Iterator[str]:
    """Yield the keys, texts and numbers of a JSON value, up to a limit."""
    pending = [value]
    characters = count = 0
    while pending and count < MAX_VALUES and characters < MAX_FIELD_CHARACTERS:
        item = pending.pop()
        if isinstance(item, dict):
            for key in reversed(item):
                pending += [item[key], str(key)]
        elif isinstance(item, list | tuple):
            pending += reversed(item)
        elif item is not None:
            text = str(item)[:MAX_FIELD_CHARACTERS]
            count += 1
            characters += len(text)
            yield text
