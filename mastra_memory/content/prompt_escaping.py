"""Escape stored text in prompts, so that it cannot close or forge the tags around it.

Messages and memories are written by users. A text like `</working_memory>` must not end the block
in which the prompt quotes it (prompt injection).
"""

import re
import unicodedata
from functools import lru_cache

RESERVED_TAGS = (
    "working_memory_data",
    "working_memory_template",
    "working_memory",
    "remembered_from_other_conversation",
    "observations",
    "observation-group",
    "current-task",
    "suggested-response",
    "thread-title",
    "extracted-values",
    "previous-observations",
    "prior-metadata",
    "new-messages",
    "observation-log",
    "pinned-observations",
    "guidance",
    "other-conversation",
    "system-reminder",
    "conversation",
)
"""Every tag that has a meaning in our prompts or in the answers of our models."""

_BRACKET = re.compile("[<\uff1c\ufe64]")
_GAP = r"[^a-z0-9<>]{0,3}"
# Matches a reserved tag in any disguise: spaces, any kind of slash, attributes, other hyphens.
_RESERVED_TAG = re.compile(
    rf"<[^a-z0-9<>]*(?:{'|'.join(re.sub('[-_]', lambda _: _GAP, tag) for tag in RESERVED_TAGS)})"
    r"(?![a-z0-9_])"
)

_INVISIBLE_CATEGORIES = frozenset({"Cf", "Mn", "Me"})
_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""All characters that a model may read as the end of a line."""


def escape_tags(text: str) -> str:
    """Return the text with `&lt;` instead of the opening bracket of each reserved tag.

    Full-width letters and brackets, capitals and invisible characters do not hide a tag.
    """
    if not _BRACKET.search(text):
        return text
    if text.isascii():
        folded, positions = text.lower(), None
    else:
        # One character can fold to none or to several, so note where each one comes from.
        folded_characters = [_fold(character) for character in text]
        folded = "".join(folded_characters)
        positions = [at for at, folded_one in enumerate(folded_characters) for _ in folded_one]
    escaped: list[str] = []
    end = 0
    for match in _RESERVED_TAG.finditer(folded):
        start = match.start() if positions is None else positions[match.start()]
        escaped += [text[end:start], "&lt;"]
        end = start + 1
    return "".join([*escaped, text[end:]]) if escaped else text


@lru_cache(maxsize=4096)
def _fold(character: str) -> str:
    """Return a character in its plain form, or an empty text if it is invisible."""
    if unicodedata.category(character) in _INVISIBLE_CATEGORIES:
        return ""
    return unicodedata.normalize("NFKC", character).lower()


def wrap_in_tag(tag: str, text: str) -> str:
    """Return the escaped text between an opening and a closing tag, each on its own line."""
    return f"<{tag}>\n{escape_tags(text)}\n</{tag}>"


def indent_lines(text: str, by: str = "  ") -> str:
    """Return the escaped text with all lines after the first indented.

    In a transcript each entry starts with a time or a role. An indented line cannot be taken for
    another entry.
    """
    return _LINE_BREAK.sub(f"\n{by}", escape_tags(text))
