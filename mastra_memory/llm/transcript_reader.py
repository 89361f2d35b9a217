"""Read the transcript in the prompt of the Observer; see `content.transcript` for its format."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

MAX_ENTRY_CHARS = 12_000
"""Longer texts are cut in the middle, so that one message of 20 MB does not take minutes."""

_START_OF_LINE = re.compile(
    r"^(?:(?P<day>[A-Z][a-z]{2} \d{1,2} \d{4}):$"
    r"|(?P<label>(?:Tool (?:Call|Result|Error|Denied)) [^\n:(]{1,200}"
    r"|User|Assistant|Tool|Data|Signal|Reasoning|Image|File|Source)"
    r"(?: \((?P<hour>\d{1,2}):(?P<minute>\d{2}) (?P<half>[AP]M)\))?: ?)",
    re.MULTILINE,
)
"""Days, and the beginning of entries. All other lines continue the entry before them."""
_SPEAKER = re.compile(r"^([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): +(?=\S)")
_MAX_SPEAKERS = 12
"""More different names than this are not the names of speakers."""


@dataclass(slots=True)
class Entry:
    """A line of the transcript, with the lines that continue it."""

    label: str
    """`User`, `Assistant`, `Tool Call <name>`, `Tool Result <name>`, `Image`, …"""
    day: date | None
    clock: str
    """`14:30`, or empty if the transcript has no times."""
    text: str
    speaker: str = ""
    """The name at the beginning of the text, if the messages have the names of their speakers."""

    @property
    def is_speech(self) -> bool:
        """True if a person or the assistant wrote the text."""
        return self.label in ("User", "Assistant")

    @property
    def author(self) -> str:
        """The name of the speaker, or the role."""
        return self.speaker or self.label


def read_entries(transcript: str) -> list[Entry]:
    """Return the entries of a transcript in their order, each cut to `MAX_ENTRY_CHARS`."""
    entries: list[Entry] = []
    day: date | None = None
    clock = ""
    text_start: int | None = None
    # Entries are searched rather than lines, because a message can have millions of lines.
    for match in _START_OF_LINE.finditer(transcript):
        if text_start is not None:
            entries[-1].text = _cut_middle(transcript, text_start, match.start())
            text_start = None
        if match["label"] is None:
            day, clock = _read_day(match["day"]) or day, ""
        else:
            clock = _read_clock(match) or clock
            entries.append(Entry(match["label"], day, clock, ""))
            text_start = match.end()
    if text_start is not None:
        entries[-1].text = _cut_middle(transcript, text_start, len(transcript))
    _find_speakers(entries)
    return entries


def _cut_middle(transcript: str, start: int, end: int) -> str:
    if end - start <= MAX_ENTRY_CHARS:
        return transcript[start:end].strip()
    half = MAX_ENTRY_CHARS // 2
    return f"{transcript[start : start + half]}\n{transcript[end - half : end]}".strip()


def _read_day(text: str) -> date | None:
    try:
        return datetime.strptime(text, "%b %d %Y").date()
    except ValueError:
        return None


def _read_clock(match: re.Match[str]) -> str:
    if match["hour"] is None:
        return ""
    hour = int(match["hour"]) % 12 + (12 if match["half"] == "PM" else 0)
    return f"{hour:02}:{match['minute']}"


def _find_speakers(entries: list[Entry]) -> None:
    """Move names such as `Ann:` from the texts to the speakers, if all messages have them."""
    speech = [entry for entry in entries if entry.is_speech and entry.text]
    matches = [_SPEAKER.match(entry.text) for entry in speech]
    names = [match[1] for match in matches if match]
    if len(names) < len(speech) or len(set(names)) > min(_MAX_SPEAKERS, (len(names) + 1) // 2 + 1):
        return
    for entry, match in zip(speech, matches, strict=True):
        assert match is not None
        entry.speaker, entry.text = match[1], entry.text[match.end() :]


def group_exchanges(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries from each message of the user to the next one."""
    group: list[Entry] = []
    for entry in entries:
        if entry.label == "User" and any(other.label != "User" for other in group):
            yield group
            group = []
        group.append(entry)
    if group:
        yield group
