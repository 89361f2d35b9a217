"""Stored text set between tags of ours, so that it can neither close nor counterfeit them."""

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
    "other-conversation",
    "system-reminder",
    "conversation",
)
"""Every tag that we, or the models we prompt, give a meaning to."""

_BRACKET = re.compile("[<\uff1c\ufe64]")
_GAP = r"[^a-z0-9<>]{0,3}"
# A tag of ours however it is dressed up: blanks, any kind of slash, attributes, other hyphens.
_OURS = re.compile(
    rf"<[^a-z0-9<>]*(?:{'|'.join(re.sub('[-_]', lambda _: _GAP, tag) for tag in RESERVED_TAGS)})"
    r"(?![a-z0-9_])"
)

_UNSEEN = frozenset({"Cf", "Mn", "Me"})
_BREAKS = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Everything that somebody may take for the end of a line."""


def escape_tags(text: str) -> str:
    """The text with `&lt;` in place of the bracket of each tag that is one of ours.

    Letters and brackets of other widths, capitals and invisible characters make no other tag of it.
    """
    if not _BRACKET.search(text):
        return text
    if text.isascii():
        folded, places = text.lower(), None
    else:
        pieces = [_fold(character) for character in text]
        folded = "".join(pieces)
        places = [at for at, piece in enumerate(pieces) for _ in piece]
    kept: list[str] = []
    end = 0
    for found in _OURS.finditer(folded):
        at = found.start() if places is None else places[found.start()]
        kept += [text[end:at], "&lt;"]
        end = at + 1
    return "".join([*kept, text[end:]]) if kept else text


@lru_cache(maxsize=4096)
def _fold(character: str) -> str:
    """A character as a reader takes it; empty for one that nobody sees."""
    if unicodedata.category(character) in _UNSEEN:
        return ""
    return unicodedata.normalize("NFKC", character).lower()


def wrap_in_tag(tag: str, text: str) -> str:
    """The text between an opening and a closing tag, each on a line of its own."""
    return f"<{tag}>\n{escape_tags(text)}\n</{tag}>"


def indent_lines(text: str, by: str = "  ") -> str:
    """The text on lines that, after the first, all start with blanks.

    In a list of lines each starting with a time or a role, no line of a text can pass for one.
    """
    return _BREAKS.sub(f"\n{by}", escape_tags(text))
