"""Cut a text into passages that an embedder takes, at the best borders there are."""

import re
from collections.abc import Iterator

from mastra_memory.content import truncation

MAX_PASSAGES = 1_000
"""What follows in a text of many megabytes is not embedded."""

_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]*")
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"[.!?…]+[\"')\]”’»]*\s|[。！？｡]+[」』”’）]*|\n")
_SPACE = re.compile(r"\s")


def split_into_passages(text: str, limit: int) -> list[str]:
    """Passages of at most `limit` bytes of UTF-8; none for a blank text.

    Cut between paragraphs, else sentences, else words, and where a word is longer than a passage,
    between characters. Base64 data is left out.
    """
    text = _DATA_URI.sub(" ", text).strip()
    if not text:
        return []
    if len(text.encode()) <= limit:
        return [text]
    found = (passage for passage in map(str.strip, _iterate_slices(text, limit)) if passage)
    return [passage for passage, _ in zip(found, range(MAX_PASSAGES), strict=False)]


def _iterate_slices(text: str, limit: int) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = at + _count_fitting_characters(text[at : at + limit], limit)
        if end < len(text):
            end = _find_boundary(text, at, end)
        yield text[at:end]
        at = end


def _count_fitting_characters(text: str, limit: int) -> int:
    """How many characters of the text fit into `limit` bytes; at least one."""
    raw = text.encode()
    if len(raw) <= limit:
        return len(text)
    return max(1, len(raw[:limit].decode(errors="ignore")))


def _find_boundary(text: str, start: int, end: int) -> int:
    """The best place to cut in the second half of what fits."""
    middle = start + (end - start) // 2
    for pattern in (_PARAGRAPH, _SENTENCE, _SPACE):
        ends = [found.end() for found in pattern.finditer(text, middle, end)]
        if ends:
            return ends[-1]
    # A cluster that is longer than a passage has to be split.
    boundary = truncation.find_boundary(text, end, start=start)
    return boundary if boundary > start else end
