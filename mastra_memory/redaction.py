"""Mask personal data in what is shown or exported; what is stored stays."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mastra_memory import conf

BUILT_IN = {
    "email": r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    "card": r"\b(?:\d[ -]?){12,18}\d\b",
    "phone": r"(?<![\w/.-])(?:\+|00)\d(?:[ ()./-]{0,2}\d){6,14}\b"
    r"|(?<![\w/.-])\(?0\d{1,4}\)?(?:[ /.-]{1,2}\d{2,5}){2,5}\b",
}
"""Patterns that ship with the app, by name."""

LONGEST = 200_000
"""Longer texts are masked piece by piece, so that no pattern of a host runs over megabytes."""

Mask = Callable[[str], str]


def as_is(text: str) -> str:
    """The mask of those who may see everything."""
    return text


def mask() -> Mask:
    """The mask of the patterns in the settings."""
    return _mask(tuple(conf.app_settings().REDACT))


@lru_cache(maxsize=8)
def _mask(patterns: Sequence[str]) -> Mask:
    compiled = [(_name(entry), re.compile(BUILT_IN.get(entry, entry))) for entry in patterns]
    if not compiled:
        return as_is

    def masked(text: str) -> str:
        pieces = [text[at : at + LONGEST] for at in range(0, len(text), LONGEST)]
        return "".join(_masked(piece, compiled) for piece in pieces)

    return masked


def _masked(text: str, compiled: Sequence[tuple[str, re.Pattern[str]]]) -> str:
    for name, pattern in compiled:
        if name == "card":
            text = pattern.sub(lambda m: "[card]" if _is_card(m[0]) else m[0], text)
        else:
            text = pattern.sub(f"[{name}]", text)
    return text


def _name(entry: str) -> str:
    return entry if entry in BUILT_IN else "hidden"


def _is_card(text: str) -> bool:
    """Luhn's check: order numbers of the same length stay readable."""
    digits = [int(char) for char in reversed(text) if char.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def masked_json(value: Any, apply: Mask) -> Any:
    """The JSON value with every text in it masked, keys too."""
    if apply is as_is:
        return value
    if isinstance(value, str):
        return apply(value)
    if isinstance(value, Mapping):
        return {apply(str(key)): masked_json(part, apply) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [masked_json(part, apply) for part in value]
    return value
