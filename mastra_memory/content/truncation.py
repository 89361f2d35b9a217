r"""Find where a text may be cut without splitting a character that readers see as one.

Accents, flags, family emoji and Indic or Thai syllables consist of several code points. Unicode
calls them extended grapheme clusters (UAX #29); `\X` of the `regex` package implements them.
"""

import regex

_CLUSTER = regex.compile(r"\X")


def find_boundary(text: str, end: int, *, start: int = 0) -> int:
    """Return the last cluster boundary at or before `end`.

    Args:
        text: The text to cut.
        end: The index to cut at if that does not split a cluster.
        start: An index that is known to be a boundary. It is returned if there is no other.
    """
    if end >= len(text):
        return len(text)
    # Two ASCII characters are always two clusters, except a line break of CR and LF. This spares
    # scanning a long word such as Base64, which takes a microsecond per character.
    if text[end - 1 : end + 1].isascii() and text[end - 1 : end + 1] != "\r\n":
        return end
    boundary = start
    # Whether there is a boundary at `end` depends on the character after it, hence the + 1.
    for cluster in _CLUSTER.finditer(text, start, end + 1):
        if cluster.end() > end:
            break
        boundary = cluster.end()
    return boundary


def truncate_at_word(text: str, limit: int) -> str:
    """Return the text, or its beginning with an ellipsis if it has more than `limit` characters.

    It is cut between words, or between characters (grapheme clusters) if the last word is longer
    than half the limit.
    """
    if len(text) <= limit:
        return text
    cut = text[: find_boundary(text, limit - 1)]
    head, space, _ = cut.rpartition(" ")
    kept = head if space and len(head) > limit // 2 else cut
    return kept.rstrip(" .,;:") + "…"
