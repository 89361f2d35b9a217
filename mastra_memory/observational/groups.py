"""Groups of observations, which lead back to the messages that they came from.

With `retrieval`, each batch of observations is wrapped with an id and the range of its messages:

    <observation-group id="4134b4934b7cd9d7" range="m1:m8">
    Date: Jan 1, 2025
    * 🔴 (10:00) User has a dog
    </observation-group>
"""

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from mastra_memory.content import part_types
from mastra_memory.types import StoredMessage

REFLECTION_KIND = "reflection"
_GROUP = re.compile(
    r"^<observation-group\b(?P<attributes>[^>\n]*)>[ \t]*\n"
    r"(?P<text>(?:(?!^<observation-group\b).)*?)\n?^</observation-group>[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_TAG_LINE = re.compile(r"^</?observation-group\b[^>\n]*>[ \t]*(?:\n|\Z)", re.MULTILINE)
_ATTRIBUTE = re.compile(r'\b(id|range|kind)="([^"\n]*)"')
_SECTION = re.compile(r"^## Group\b[^\n]*$", re.MULTILINE)
_QUOTED = re.compile(r"`([^`\n]+)`")
_RANGE_LINE = re.compile(r"\A\s*_range: `[^`\n]*`_[ \t]*(?:\n|\Z)")
_SPECIAL = re.compile(r"[\"%:,<>`\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationGroup:
    """A batch of observations with the range of its messages."""

    id: str
    range: str
    """Segments `first:last` of message ids, separated by commas."""
    text: str
    kind: str = ""
    """`reflection` if the Reflector wrote it, else empty."""

    @property
    def segments(self) -> list[tuple[str, str]]:
        """The ids of the first and last message of each segment."""
        return parse_range(self.range)


def make_group_id() -> str:
    """Return a random id."""
    return secrets.token_hex(8)


def wrap_in_group(text: str, message_range: str, *, group_id: str = "", kind: str = "") -> str:
    """Return the observations inside a group. Blank observations return an empty text."""
    text = strip_group_tags(text).strip()
    if not text:
        return ""
    more = f' kind="{kind}"' if kind else ""
    opening = (
        f'<observation-group id="{group_id or make_group_id()}" range="{message_range}"{more}>'
    )
    return f"{opening}\n{text}\n</observation-group>"


def format_range(messages: Sequence[StoredMessage]) -> str:
    """Return `first:last`, the ids of the first and last message that have visible content.

    If none has, the first and last message are used. Characters of an id that have a meaning in
    a range are percent-encoded.
    """
    visible = [message for message in messages if _is_visible(message)] or messages
    if not visible:
        return ""
    return f"{_quote_id(visible[0].id)}:{_quote_id(visible[-1].id)}"


def _is_visible(message: StoredMessage) -> bool:
    return any(
        not isinstance(part, part_types.UnknownPart)
        for part in part_types.iter_parts(message.content)
    )


def _quote_id(message_id: str) -> str:
    return _SPECIAL.sub(lambda match: quote(match[0], safe=""), message_id)


def parse_range(message_range: str) -> list[tuple[str, str]]:
    """Return the first and last message id of each segment of a range."""
    segments = []
    for segment in filter(None, message_range.split(",")):
        first, _, last = segment.partition(":")
        segments.append((unquote(first), unquote(last or first)))
    return segments


def parse_groups(log: str) -> list[ObservationGroup]:
    """Return the groups of a log in order. Skip those without an id or a range."""
    groups = []
    for match in _GROUP.finditer(log):
        if (group := _read_group(match)) is not None:
            groups.append(group)
    return groups


def _read_group(match: re.Match[str]) -> ObservationGroup | None:
    attributes = dict(_ATTRIBUTE.findall(match["attributes"]))
    if not attributes.get("id") or not attributes.get("range"):
        return None
    return ObservationGroup(
        id=attributes["id"],
        range=attributes["range"],
        text=match["text"].strip(),
        kind=attributes.get("kind", ""),
    )


def strip_group_tags(log: str) -> str:
    """Return the log without group tags, also without those that are not closed."""
    return _TAG_LINE.sub("", log)


def render_groups(log: str) -> str:
    """Return the log with a heading and the range for each group, for the agent."""

    def render(match: re.Match[str]) -> str:
        group = _read_group(match)
        return match["text"].strip() if group is None else render_group(group)

    return strip_group_tags(_GROUP.sub(render, log))


def render_group(group: ObservationGroup) -> str:
    """Return one group with its heading and its range."""
    return f"## Group `{group.id}`\n_range: `{group.range}`_\n\n{group.text}"


def combine_ranges(ranges: Iterable[str]) -> str:
    """Return one range that covers all of these.

    If all ids are numbers, it goes from the smallest to the largest. Otherwise it goes from the
    start of the first range to the end of the last one.
    """
    segments = list(dict.fromkeys(part for item in ranges for part in item.split(",") if part))
    pairs = [segment.split(":") for segment in segments]
    if not pairs or any(len(pair) != 2 or not all(pair) for pair in pairs):
        return ",".join(segments)
    if all(number.isdecimal() for pair in pairs for number in pair):
        numbers = [int(number) for pair in pairs for number in pair]
        return f"{min(numbers)}:{max(numbers)}"
    return f"{pairs[0][0]}:{pairs[-1][1]}"


def restore_groups(reflection: str, source_log: str) -> str:
    """Return a reflection with group tags. The ranges come from the groups of `source_log`.

    If the Reflector kept `## Group` headings, each section becomes a group. Otherwise the whole
    text becomes one group.

    Args:
        reflection: The text of the Reflector.
        source_log: The log that it read, with groups. Without groups nothing changes.
    """
    sources = parse_groups(source_log)
    if not sources or not reflection.strip():
        return reflection
    sections = list(_SECTION.finditer(reflection))
    if not sections:
        whole = combine_ranges(group.range for group in sources)
        return wrap_in_group(reflection, whole, kind=REFLECTION_KIND)
    ends = [match.start() for match in sections[1:]] + [len(reflection)]
    parts = [reflection[: sections[0].start()].strip()]
    for number, (heading, end) in enumerate(zip(sections, ends, strict=True), 1):
        text = _RANGE_LINE.sub("", reflection[heading.end() : end]).strip()
        quoted = _QUOTED.search(heading[0])
        group_id = quoted[1] if quoted else f"derived-group-{number}"
        covered = _find_sources(group_id, text, number, sources)
        message_range = combine_ranges(group.range for group in covered)
        parts.append(wrap_in_group(text, message_range, group_id=group_id, kind=REFLECTION_KIND))
    return "\n\n".join(filter(None, parts))


def _find_sources(
    group_id: str, text: str, number: int, sources: Sequence[ObservationGroup]
) -> list[ObservationGroup]:
    """Return the groups that a section was made from.

    These are the group with its id and those that share a line with it, or else the group at the
    same position.
    """
    lines = {line.strip() for line in text.splitlines() if line.strip()}
    covered = [
        group
        for group in sources
        if group.id == group_id or lines & {line.strip() for line in group.text.splitlines()}
    ]
    return covered or [sources[min(number, len(sources)) - 1]]
