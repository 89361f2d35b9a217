"""Extract the title from the answer of a model."""

import re
import unicodedata

from mastra_memory.content import truncation
from mastra_memory.llm.reasoning import strip_reasoning

MAX_LENGTH = 80

_PREFIX = re.compile(
    r"^(?:(?:here(?: is|'s|’s) )?(?:the |a |your |suggested |conversation |chat |thread )*title"
    r"(?: for (?:the|this|your) (?:conversation|chat|thread))?"
    r"(?:(?: is)?\s*[:：–-]| is(?= [\"“‘«']))"
    r"|the user (?:wants|would like|is asking|asks|needs)(?: (?:to|for|about|how to|help with))*\b"
    r"|[#>*•-]+\s)\s*",
    re.I,
)
_MARKDOWN = re.compile(r"(\*\*|__|`)(.+?)\1")
_QUOTES = ('""', "''", "“”", "‘’", "„“", "«»", "»«", "「」", "『』", "()", "[]")


def clean_title(answer: str) -> str:
    """Return the title in a model's answer: one line without reasoning, quotes and prefixes."""
    text = strip_reasoning(answer)
    lines = [line for line in map(_drop_invisible, text.splitlines()) if _has_content(line)]
    if len(lines) > 1 and (lines[0].endswith(":") or lines[0].strip("#* ").lower() == "title"):
        lines = lines[1:]
    title = re.sub(r"\s+", " ", lines[0]) if lines else ""
    while (bare := _strip_decoration(title)) != title:
        title = bare
    title = title.rstrip(" .。") if not title.endswith("..") else title
    return truncation.truncate_at_word(title[:1].upper() + title[1:], MAX_LENGTH)


def _drop_invisible(line: str) -> str:
    """Return the line without control characters, including those for the text direction."""
    kept = (c for c in line if c in "\t\u200c\u200d" or unicodedata.category(c) not in ("Cc", "Cf"))
    return "".join(kept).strip()


def _has_content(line: str) -> bool:
    """Return whether a line has a letter, a digit or an emoji, and is not a code fence."""
    return not line.startswith("```") and any(
        unicodedata.category(c)[0] in "LN" or unicodedata.category(c) == "So" for c in line
    )


def _strip_decoration(title: str) -> str:
    title = _PREFIX.sub("", _MARKDOWN.sub(r"\2", title)).strip()
    for pair in _QUOTES:
        opening, closing = pair[0], pair[1]
        inner = title[1:-1]
        quoted = len(title) > 1 and title[0] == opening and title[-1] == closing
        if quoted and opening not in inner and closing not in inner:
            return inner.strip()
    return title
