"""Mask personal data in what is shown or exported. Stored data does not change."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mastra_memory import conf
from mastra_memory.exceptions import InvalidInput

BUILT_IN_PATTERNS = {
    "email": r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    "card": r"\b(?:\d[ -]?){12,18}\d\b",
    "phone": r"(?<![\w/.-])(?:\+|00)\d(?:[ ()./-]{0,2}\d){6,14}\b"
    r"|(?<![\w/.-])\(?0\d{1,4}\)?(?:[ /.-]{1,2}\d{2,5}){2,5}\b",
}
"""The patterns that `REDACT` can name."""

EXPRESSION_PREFIX = "regex:"
"""Marks an entry of `REDACT` as a regular expression."""

_PLACEHOLDER = re.compile(rf"\[(?:{'|'.join(BUILT_IN_PATTERNS)}|hidden)\]")

WINDOW_CHARS = 200_000
"""Patterns search this many characters at a time, which limits the time of a slow pattern."""
MAX_MATCH_CHARS = 1_000
"""The length of the longest value that is masked as a whole: windows overlap by this much."""

_EPOCH_MILLISECONDS = range(10**12, 2 * 10**12)
"""Times from 2001 to 2033. One in ten of these numbers passes Luhn's check, but no card number
starts with these digits."""

Mask = Callable[[str], str]


def keep_text(text: str) -> str:
    """Return the text unchanged, for users who may see personal data."""
    return text


def get_mask() -> Mask:
    """Return the mask for the patterns in the `REDACT` setting."""
    return _build_mask(tuple(conf.app_settings().REDACT))


def compile_entry(entry: Any) -> re.Pattern[str]:
    """Return the compiled pattern of one entry of `REDACT`.

    Raises:
        InvalidInput: The entry is neither a known name nor marked as a regular expression, or the
            expression is broken. An unknown name must not be taken for an expression: a typo would
            switch masking off.
    """
    if isinstance(entry, re.Pattern):
        return entry
    text = str(entry)
    if text in BUILT_IN_PATTERNS:
        return re.compile(BUILT_IN_PATTERNS[text])
    if not text.startswith(EXPRESSION_PREFIX):
        names = ", ".join(BUILT_IN_PATTERNS)
        raise InvalidInput(
            f"REDACT has the unknown name {text!r}. Known names are: {names}. A regular expression "
            f"begins with {EXPRESSION_PREFIX!r}."
        )
    try:
        return re.compile(text.removeprefix(EXPRESSION_PREFIX))
    except re.error as error:
        raise InvalidInput(f"REDACT has a broken expression, {text!r}: {error}") from error


@lru_cache(maxsize=8)
def _build_mask(patterns: Sequence[str]) -> Mask:
    compiled = [(_get_placeholder_name(entry), compile_entry(entry)) for entry in patterns]
    if not compiled:
        return keep_text

    def masked(text: str) -> str:
        for name, pattern in compiled:
            text = _substitute(text, name, pattern)
        return text

    return masked


def mask_beginning(text: str, apply: Mask, limit: int, *, is_cut: bool = False) -> str:
    """Return at most `limit` characters of the masked text.

    A value that crosses the limit is masked as a whole, because the text is masked before it is
    cut. Only the beginning of a long text is masked. Pass `is_cut=True` if
    `text` is the beginning of a longer text.
    """
    if apply is keep_text:
        return text[:limit]
    longest = limit + 2 * MAX_MATCH_CHARS
    masked = apply(text[:longest])
    if is_cut or len(text) > longest:
        # A value at the end may be incomplete, and then no pattern recognizes it.
        masked = masked[: max(0, len(masked) - MAX_MATCH_CHARS)]
    return masked[:limit]


def _substitute(text: str, name: str, pattern: re.Pattern[str]) -> str:
    """Replace every match by its name, window by window."""
    pieces: list[str] = []
    copied = 0
    for match in _find_matches(text, pattern):
        if name == "card" and not _is_card(match[0]):
            continue
        pieces += [text[copied : match.start()], f"[{name}]"]
        copied = match.end()
    return "".join([*pieces, text[copied:]]) if pieces else text


def _find_matches(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the matches in order. One that begins in a window may end in the overlap."""
    start = 0
    while start < len(text):
        end = start + WINDOW_CHARS
        following = end
        for match in pattern.finditer(text, start, end + MAX_MATCH_CHARS):
            if match.start() >= end:
                break
            yield match
            following = max(following, match.end())
        start = following


def replace_placeholders(text: str, replacement: str) -> str:
    """Return the masked text with `replacement` in place of `[email]`, `[hidden]`, ..."""
    return _PLACEHOLDER.sub(replacement, text)


SPLIT_CONTEXT_CHARS = 300
"""Characters on each side of a cut that are checked for something to mask."""
MAX_SPLIT_ATTEMPTS = 200


def find_split_position(text: str, limit: int, apply: Mask) -> int:
    """Return a position up to `limit` that does not lie within something that is masked.

    If an e-mail address were cut in two, no pattern would match the halves.
    A position is correct if masking both sides separately gives the same text as masking them
    together. If none of `MAX_SPLIT_ATTEMPTS` positions is correct, return `limit`.
    """
    if len(text) <= limit or apply is keep_text:
        return min(len(text), limit)
    for at in range(limit, max(0, limit - MAX_SPLIT_ATTEMPTS), -1):
        before = text[max(0, at - SPLIT_CONTEXT_CHARS) : at]
        after = text[at : at + SPLIT_CONTEXT_CHARS]
        if apply(before + after) == apply(before) + apply(after):
            return at
    return limit


def _get_placeholder_name(entry: str) -> str:
    return entry if entry in BUILT_IN_PATTERNS else "hidden"


def _is_card(text: str) -> bool:
    """Return whether the digits pass Luhn's check, which most order numbers do not."""
    digits = [int(char) for char in reversed(text) if char.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def mask_json(value: Any, apply: Mask) -> Any:
    """Return the JSON value with its texts, numbers and keys masked.

    A number that is masked becomes a text. Times in milliseconds and fractions stay.
    """
    if apply is keep_text:
        return value
    if isinstance(value, str):
        return apply(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _mask_number(value, apply)
    if isinstance(value, Mapping):
        return {apply(str(key)): mask_json(part, apply) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [mask_json(part, apply) for part in value]
    return value


def _mask_number(value: int | float, apply: Mask) -> int | float | str:
    """Return the number, or its masked text if a pattern recognizes it."""
    whole = isinstance(value, int) or value.is_integer()
    # A range compares a float with each of its elements, so only integers may be looked up.
    is_time = whole and int(value) in _EPOCH_MILLISECONDS
    if is_time or (not whole and abs(value) < 1e11):
        return value
    digits = repr(int(value)) if whole and abs(value) < 1e20 else repr(value)
    masked = apply(digits)
    return value if masked == digits else masked
