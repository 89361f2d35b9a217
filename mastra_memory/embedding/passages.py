"""Split a text into passages that an embedder accepts."""

import re
from collections.abc import Iterator

from mastra_memory.content import data_uris, truncation

MAX_PASSAGES = 1_000
"""The rest of a longer text is not embedded."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"[.!?…]+[\"')\]”’»]*\s|[。！？｡]+[」』”’）]*|\n")
_SPACE = re.compile(r"\s")


def split_into_passages(text: str, limit: int) -> list[str]:
    """Return passages of at most `limit` bytes of UTF-8; none for a blank text.

    The text is split between paragraphs where possible, otherwise between sentences or words. A
    word longer than a passage is split between characters. Base64 data is
    omitted, because it has no meaning.
    """
    text = data_uris.remove_data_uris(text).strip()
    if not text:
        return []
    if len(text.encode()) <= limit:
        return [text]
    parts = (passage for passage in map(str.strip, _iterate_slices(text, limit)) if passage)
    return [passage for passage, _ in zip(parts, range(MAX_PASSAGES), strict=False)]


def _iterate_slices(text: str, limit: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start + _count_fitting_characters(text[start : start + limit], limit)
        if end < len(text):
            end = _find_boundary(text, start, end)
        yield text[start:end]
        start = end


def _count_fitting_characters(text: str, limit: int) -> int:
    """Return how many characters of the text fit into `limit` bytes; at least one."""
    raw = text.encode()
    if len(raw) <= limit:
        return len(text)
    return max(1, len(raw[:limit].decode(errors="ignore")))


def _find_boundary(text: str, start: int, end: int) -> int:
    """Return the best position for a split, in the second half of the slice."""
    middle = start + (end - start) // 2
    for pattern in (_PARAGRAPH, _SENTENCE, _SPACE):
        ends = [match.end() for match in pattern.finditer(text, middle, end)]
        if ends:
            return ends[-1]
    # A grapheme cluster that is longer than a passage has to be split.
    boundary = truncation.find_boundary(text, end, start=start)
    return boundary if boundary > start else end
