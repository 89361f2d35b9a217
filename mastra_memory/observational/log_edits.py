"""Change single observations in the text of a log. Everything here is a pure function.

An observation is addressed by the number of its generation and of its line, such as `3.12`. The
log of a generation only grows at its end, so the address of a line never changes within it.
"""

import re
from dataclasses import dataclass
from typing import Self

from mastra_memory.exceptions import InvalidInput, Issue, StaleData
from mastra_memory.observational import log
from mastra_memory.observational.log import LogItem

MAX_OBSERVATION_CHARS = 10_000
"""The longest text of one observation, as for the answers of the Observer."""
STALE_MESSAGE = (
    "The observations have changed since they were read. Read them again, then correct them."
)
_ADDRESS = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)
_BULLET = re.compile(r"^[ \t]*[*-] ?")
_LABEL = re.compile(r"^(?:-> ?)?(?:[🔴🟡🟢✅]\ufe0f? ?)?(?:\(\d{1,2}:\d{2}\) ?)?")
"""The mark and the time at the beginning of an observation."""
_STRUCTURE = re.compile(r"^(Date: |--- |</?observation-group\b|</?thread\b)")


@dataclass(frozen=True, slots=True)
class Address:
    """Where an observation stands."""

    generation: int
    line: int
    """The index of its line in the log of that generation, from 0."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the address, such as `3.12`.

        Raises:
            InvalidInput: The text is not an address.
        """
        match = _ADDRESS.fullmatch(text)
        if match is None:
            reason = "must be the id of an observation, such as 3.12"
            raise InvalidInput(f"observation {reason}", [Issue("observation", reason)])
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.generation}.{self.line}"


def get_item(text: str, line: int) -> LogItem:
    """Return the observation on a line of the log.

    Raises:
        StaleData: There is no observation on this line.
    """
    for item in log.get_items(text):
        if item.line == line:
            return item
    raise StaleData(STALE_MESSAGE)


def edit_item(text: str, line: int, new_text: str) -> str:
    """Return the log with another text for the observation on this line.

    It keeps its place, indentation and bullet, and also its mark and its time unless the new text
    has its own.

    Raises:
        InvalidInput: The text is empty, too long, or would break the structure of the log.
        StaleData: There is no observation on this line.
    """
    item = get_item(text, line)
    bullet = _BULLET.match(item.raw)
    assert bullet is not None
    content = check_text(new_text)
    if not _get_label(content):
        content = f"{_get_label(item.raw[bullet.end() :])}{content}"
    lines = text.split("\n")
    lines[line] = f"{bullet[0]}{content}"
    return "\n".join(lines)


def _get_label(content: str) -> str:
    label = _LABEL.match(content)
    return label[0] if label else ""


def check_text(text: str) -> str:
    """Return the text of an observation on one line, without a bullet.

    Raises:
        InvalidInput: The text is empty, too long, or would break the structure of the log.
    """
    cleaned = re.sub(r"^[*-](?: |$)", "", " ".join(text.split()))
    reason = ""
    if not cleaned:
        reason = "must not be empty; delete the observation instead"
    elif len(cleaned) > MAX_OBSERVATION_CHARS:
        reason = f"must have at most {MAX_OBSERVATION_CHARS} characters"
    elif _STRUCTURE.match(cleaned):
        reason = "must not begin like a date, a boundary or a tag of the log"
    if reason:
        raise InvalidInput(f"text {reason}", [Issue("text", reason)])
    return cleaned


def delete_item(text: str, line: int) -> str:
    """Return the log without the observation on this line and the ones nested below it.

    Raises:
        StaleData: There is no observation on this line.
    """
    item = get_item(text, line)
    lines = text.split("\n")
    return "\n".join(lines[: item.line] + lines[item.end :])
