"""Parse the answers of the Observer and the Reflector, and detect degenerate ones.

Models do not always keep to the format. A wrong answer may lose hints, but never stored memory: an
answer without observations is reported as empty, and the caller stores nothing.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.llm.reasoning import strip_reasoning
from mastra_memory.observational import groups, log
from mastra_memory.options import ContinuationHints

MAX_LINE_CHARS = 10_000
TRUNCATION_MARK = " … [truncated]"
VALUES_TAG = "extracted-values"
CURRENT_TASK_TAG, RESPONSE_TAG, TITLE_TAG = "current-task", "suggested-response", "thread-title"

MIN_DEGENERATE_CHARS = 2_000
MAX_NORMAL_LINE_CHARS = 50_000
_WINDOW_CHARS, _WINDOWS, _MIN_WINDOWS, _MAX_WINDOW_DUPLICATES = 200, 50, 5, 0.4
_MIN_LINE_CHARS, _MIN_LINES, _MAX_LINE_DUPLICATES = 24, 20, 0.5

_OPENING = re.compile(r"^[ \t]*<observations>", re.MULTILINE | re.IGNORECASE)
_CLOSING = re.compile(r"</observations>", re.IGNORECASE)
_LIST_LINE = re.compile(r"^[ \t]*(?:[-*]|\d+\.)[ \t]")
_THREAD = re.compile(
    r'<thread\s+id="([^"\n]*)"\s*>((?:(?!<thread\s).)*?)</thread>', re.DOTALL | re.IGNORECASE
)
_THREAD_TAG_LINE = re.compile(r"^[ \t]*</?thread\b[^>\n]*>[ \t]*$\n?", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedAnswer:
    """The parts of an answer."""

    observations: str = ""
    """Empty if the answer has none."""
    current_task: str | None = None
    suggested_response: str | None = None
    thread_title: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values of inline extractors by slug. Empty values are left out."""
    is_prose: bool = False
    """Whether the answer had neither a block of observations nor a list."""


def parse_answer(
    answer: str,
    *,
    hints: ContinuationHints,
    with_title: bool = False,
    slugs: Collection[str] = (),
    keep_whole: bool = False,
    keep_thread_tags: bool = False,
) -> ParsedAnswer:
    """Return the parts of an answer about one thread.

    Args:
        answer: The text of the model.
        hints: The hints that the model was asked for.
        with_title: Whether the model was asked for a title. Otherwise a title is ignored.
        slugs: The slugs of inline extractors.
        keep_whole: Use the whole text if it has neither a block of observations nor a list, as
            for the Reflector.
        keep_thread_tags: Keep `<thread>` tags, which the log of a resource has.
    """
    rest = _normalize(answer)
    wanted = {
        CURRENT_TASK_TAG: hints.current_task,
        RESPONSE_TAG: hints.suggested_response,
        TITLE_TAG: with_title,
    }
    found: dict[str, str] = {}
    for tag in (*wanted, VALUES_TAG, *slugs):
        value, rest = _take_section(rest, tag, only_lines=not wanted.get(tag, True))
        if value:
            found[tag] = value
    blocks = _read_blocks(rest)
    observations = _read_list(rest) if blocks is None else blocks
    is_prose = keep_whole and blocks is None and not observations
    if is_prose:
        observations = _OPENING.sub("", rest).strip()
    return ParsedAnswer(
        observations=clean_observations(observations, keep_thread_tags=keep_thread_tags),
        current_task=found.get(CURRENT_TASK_TAG),
        suggested_response=found.get(RESPONSE_TAG),
        thread_title=found.get(TITLE_TAG) if with_title else None,
        values=_read_values(found, slugs),
        is_prose=is_prose,
    )


def parse_thread_answers(
    answer: str,
    thread_ids: Collection[str],
    *,
    hints: ContinuationHints,
    with_title: bool = False,
    slugs: Collection[str] = (),
) -> dict[str, ParsedAnswer]:
    """Return the answers by thread, for several threads observed together.

    A thread that is missing in the answer gets an empty one; unknown threads are ignored. If there
    is only one thread, an answer without thread tags counts as its answer.
    """
    text = _normalize(answer)
    body = _read_blocks(text) or text
    sections: dict[str, list[str]] = {}
    for match in _THREAD.finditer(body):
        sections.setdefault(log.read_thread_id(match[1]), []).append(match[2].strip())
    if not sections and len(thread_ids) == 1:
        sections = {thread_id: [text] for thread_id in thread_ids}
    return {
        thread_id: _parse_section(
            "\n".join(sections.get(thread_id, ())), hints=hints, with_title=with_title, slugs=slugs
        )
        for thread_id in thread_ids
    }


def _parse_section(
    section: str, *, hints: ContinuationHints, with_title: bool, slugs: Collection[str]
) -> ParsedAnswer:
    """Parse the section of a thread, whose observations have no tag of their own."""
    body = section if _OPENING.search(section) else f"<observations>\n{section}\n</observations>"
    return parse_answer(body, hints=hints, with_title=with_title, slugs=slugs)


def _normalize(answer: str) -> str:
    text = json_text.clean_text(strip_reasoning(answer))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _take_section(text: str, tag: str, *, only_lines: bool) -> tuple[str, str]:
    """Return the value of the last section with this tag, and the text without such sections.

    Args:
        text: The answer.
        tag: The name of the tag, in any case.
        only_lines: Accept only tags at the start of a line, because the section was not asked for.
    """
    start = r"^[ \t]*" if only_lines else ""
    pattern = re.compile(
        rf"{start}<{tag}>((?:(?!<{tag}>).)*?){start}</{tag}>",
        re.DOTALL | re.IGNORECASE | re.MULTILINE,
    )
    values = [match[1].strip() for match in pattern.finditer(text)]
    if not values:
        return "", text
    return values[-1], pattern.sub("", text)


def _read_blocks(text: str) -> str | None:
    """Return the contents of all blocks of observations, or None if no block is closed.

    A block starts with a tag at the start of a line, and ends with the last closing tag before the
    next block.
    """
    openings = list(_OPENING.finditer(text))
    bounds = [*(match.start() for match in openings), len(text)]
    contents = []
    for opening, end in zip(openings, bounds[1:], strict=True):
        closings = list(_CLOSING.finditer(text, opening.end(), end))
        if closings:
            contents.append(text[opening.end() : closings[-1].start()].strip())
    return "\n".join(filter(None, contents)) if contents else None


def _read_list(text: str) -> str:
    """Return the lines that are list items."""
    return "\n".join(line.rstrip() for line in text.split("\n") if _LIST_LINE.match(line))


def clean_observations(text: str, *, keep_thread_tags: bool = False) -> str:
    """Return observations that are safe to append to a log.

    Tags and boundaries that only we write are removed, and overlong lines are cut.
    """
    text = log.BOUNDARY_LINE.sub("", groups.strip_group_tags(text))
    if not keep_thread_tags:
        text = _THREAD_TAG_LINE.sub("", text)
    return "\n".join(map(_cut_line, text.split("\n"))).strip("\n").rstrip()


def _cut_line(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + TRUNCATION_MARK


def _read_values(found: Mapping[str, str], slugs: Collection[str]) -> dict[str, Any]:
    """Return the values of inline extractors. The JSON object takes precedence over tags."""
    values: dict[str, Any] = {slug: found[slug] for slug in slugs if slug in found}
    try:
        loaded = json_text.loads(_strip_fence(found.get(VALUES_TAG, "")) or "{}")
    except InvalidInput:
        return values
    if isinstance(loaded, Mapping):
        values |= {slug: loaded[slug] for slug in slugs if not is_blank(loaded.get(slug))}
    return values


def _strip_fence(text: str) -> str:
    return re.sub(r"^```\w*\n|\n?```$", "", text.strip())


def is_blank(value: Any) -> bool:
    """Return whether an extracted value is empty, so that it must not replace an older one."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or value == {} or value == []


def is_degenerate(text: str) -> bool:
    """Return whether a model lost itself in repetition.

    Three tests find it: equal windows of text, one endless line, and equal lines.
    """
    if len(text) < MIN_DEGENERATE_CHARS:
        return False
    return (
        _has_equal_windows(text)
        or any(len(line) > MAX_NORMAL_LINE_CHARS for line in text.split("\n"))
        or _has_equal_lines(text)
    )


def _has_equal_windows(text: str) -> bool:
    step = max(1, math.floor(len(text) / _WINDOWS))
    starts = range(0, len(text) - _WINDOW_CHARS + 1, step)
    windows = [text[start : start + _WINDOW_CHARS] for start in starts]
    if len(windows) <= _MIN_WINDOWS:
        return False
    return _count_duplicates(windows) / len(windows) > _MAX_WINDOW_DUPLICATES


def _has_equal_lines(text: str) -> bool:
    lines = [
        stripped for line in text.split("\n") if len(stripped := line.strip()) >= _MIN_LINE_CHARS
    ]
    if len(lines) < _MIN_LINES:
        return False
    return _count_duplicates(lines) / len(lines) > _MAX_LINE_DUPLICATES


def _count_duplicates(items: list[str]) -> int:
    return len(items) - len(set(items))
