"""`local/extractive` as Reflector: drop the observations that say least, and repetitions.

It is simple: it rewrites nothing. Important, informative and recent observations stay as they are;
at the higher levels those of the older half are cut. Pinned observations are never dropped.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mastra_memory.content import tokens
from mastra_memory.content.truncation import truncate_at_word
from mastra_memory.llm.sentences import Informativeness, RepetitionFilter

SHARES = (1.0, 0.8, 0.6, 0.4, 0.2)
"""The share of the tokens that may remain at each level. Level 0 drops only repetitions."""
TARGET_MARGIN = 0.95
"""The result stays below the target of the prompt by this factor."""
SHORTENING_LEVEL = 3
"""From this level on, items of the older half are cut."""
MAX_SHORT_ITEM_CHARS = 140
MARK_WEIGHTS = {"🔴": 3.0, "✅": 2.5, "🟡": 1.5, "🟢": 0.5}
DEFAULT_WEIGHT = 1.0
RECENCY_WEIGHT = 2.0
"""What the newest item gains over the oldest one."""
TOKENS_PER_HEADING = 8

_LOG = re.compile(r"^<observation-log>\n(.*?)\n?^</observation-log>", re.DOTALL | re.MULTILINE)
_PINNED = re.compile(
    r"^<pinned-observations>\n(.*?)\n?^</pinned-observations>", re.DOTALL | re.MULTILINE
)
_HEADING = re.compile(r"^Date: .+$")
_BOUNDARY = re.compile(r"^--- message boundary \(.*\) ---$|^</?observation-group\b.*>$")
_THREAD_TAG = re.compile(r'^<thread id="[^"]*">$|^</thread>$')
_MARK = re.compile(r"^\s*[*-]\s*([🔴🟡🟢✅])")
_PREFIX = re.compile(r"^\s*(?:[*-]\s*)?(?:->|[🔴🟡🟢✅])*\s*(?:\(\d\d:\d\d\))?\s*")


@dataclass(slots=True)
class LogItem:
    """An observation with the lines that are nested in it."""

    thread_tag: str
    heading: str
    lines: list[str] = field(default_factory=list)
    is_pinned: bool = False

    @property
    def text(self) -> str:
        """The observation without its mark and time."""
        return " ".join(_PREFIX.sub("", line) for line in self.lines)

    @property
    def weight(self) -> float:
        """The weight of the item's mark."""
        match = _MARK.match(self.lines[0])
        return MARK_WEIGHTS[match[1]] if match else DEFAULT_WEIGHT


def reflect(prompt: str, *, level: int = 0, target_tokens: int | None = None) -> str:
    """Return the answer of a Reflector for a prompt of `observational.prompts`.

    Args:
        prompt: The log, and pinned observations.
        level: From 0, gentle, to 4.
        target_tokens: The result has fewer tokens.
    """
    match = _LOG.search(prompt)
    log = match[1] if match else prompt
    pinned_texts = {
        _PREFIX.sub("", line).strip()
        for block in _PINNED.findall(prompt)
        for line in block.split("\n")
        if line.strip()
    }
    level = min(level, len(SHARES) - 1)
    condensed = condense(log, level=level, target_tokens=target_tokens, pinned=pinned_texts)
    return f"<observations>\n{condensed}\n</observations>"


def condense(
    log: str,
    *,
    level: int = 0,
    target_tokens: int | None = None,
    pinned: set[str] | None = None,
) -> str:
    """Return the most informative part of a log. It is empty only if the log is.

    Args:
        log: The observations.
        level: From 0, gentle, to 4, which keeps a fifth of the tokens.
        target_tokens: The result has fewer tokens, unless pinned items alone exceed them.
        pinned: Texts of observations that are kept.
    """
    counter = tokens.get_token_counter()
    items = list(_read_items(log))
    for item in items:
        item.is_pinned = any(text and text in item.text for text in pinned or ())
    budget = counter.text(log) * SHARES[level]
    if target_tokens is not None:
        budget = min(budget, target_tokens * TARGET_MARGIN)
    scores = _score_items(items)
    if level >= SHORTENING_LEVEL:
        for item in items[: len(items) // 2]:
            _shorten(item)
    kept = _fill_budget(items, scores, budget)
    return _write_items([items[index] for index in sorted(kept)])


def _fill_budget(items: list[LogItem], scores: dict[int, float], budget: float) -> set[int]:
    """Return the indexes of the best items that fit, of pinned ones, and of at least one."""
    counter = tokens.get_token_counter()
    costs = {index: counter.text("\n".join(items[index].lines)) for index in scores}
    # The score per token would prefer fragments to sentences; its root is a compromise.
    ranks = {index: score / math.sqrt(costs[index] + 10) for index, score in scores.items()}
    kept: set[int] = set()
    headings: set[tuple[str, str]] = set()
    for index in sorted(ranks, key=ranks.__getitem__, reverse=True):
        item = items[index]
        key = (item.thread_tag, item.heading)
        cost = costs[index] + TOKENS_PER_HEADING * (key not in headings)
        if cost > budget and not item.is_pinned and kept:
            continue
        if cost > budget and not item.is_pinned:
            _shorten(item)
        budget -= cost
        headings.add(key)
        kept.add(index)
    return kept


def _read_items(log: str) -> Iterator[LogItem]:
    """Yield the items of a log. A line that is no list item is an item of its own."""
    thread_tag = heading = ""
    item: LogItem | None = None
    for line in log.split("\n"):
        text = line.strip()
        if _THREAD_TAG.match(text):
            thread_tag, heading = (text if text.startswith("<thread") else ""), ""
        elif _HEADING.match(text):
            heading = text
        elif item is not None and text and line.startswith((" ", "\t")):
            item.lines.append(line)
            continue
        elif text and not _BOUNDARY.match(text):
            if item is not None:
                yield item
            item = LogItem(thread_tag, heading, [line])
            continue
        else:
            continue
        if item is not None:
            yield item
            item = None
    if item is not None:
        yield item


def _score_items(items: list[LogItem]) -> dict[int, float]:
    """Return the scores by index, without items that say nothing new to later ones."""
    ranking = Informativeness(item.text for item in items)
    later = RepetitionFilter()
    scores: dict[int, float] = {}
    for index in reversed(range(len(items))):
        item = items[index]
        if not later.add(item.text) and not item.is_pinned and scores:
            continue
        recency = RECENCY_WEIGHT * (index + 1) / len(items)
        scores[index] = item.weight + min(ranking.score(item.text), 8.0) / 2 + recency
        if item.is_pinned:
            scores[index] += 1_000
    return scores


def _shorten(item: LogItem) -> None:
    """Keep the beginning of the item, and of its nested lines the last one."""
    if item.is_pinned:
        return
    first, *nested = (truncate_at_word(line, MAX_SHORT_ITEM_CHARS) for line in item.lines)
    item.lines = [first, *nested[-1:]]


def _write_items(items: list[LogItem]) -> str:
    """Return a log with the headings and thread tags of the items."""
    lines: list[str] = []
    thread_tag = heading = ""
    for item in items:
        if item.thread_tag != thread_tag:
            if thread_tag:
                lines.append("</thread>")
            if item.thread_tag:
                lines.append(item.thread_tag)
            thread_tag, heading = item.thread_tag, ""
        if item.heading != heading:
            heading = item.heading
            if heading:
                lines.append(heading)
        lines += item.lines
    if thread_tag:
        lines.append("</thread>")
    return "\n".join(lines)
