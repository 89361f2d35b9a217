"""Choose observations of a log that does not fit into a context.

An observation is chosen by its relation to the query: the words that they share (BM25), and the
score of semantic recall for the message of the same minute. The observation was probably made from
this message. Neighbours get a share of the score, because an answer often follows a question that
has the words. Without a query, the important and the newest observations are chosen.

The weights were chosen on LoCoMo, a data set of long conversations (`make bench-context`).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from functools import lru_cache

from mastra_memory.content import message_text, tokens
from mastra_memory.llm import sentences
from mastra_memory.observational import log as observation_log
from mastra_memory.observational.log import LogItem
from mastra_memory.search.types import ScoredMessage
from mastra_memory.types import StoredMessage

WORDS_WEIGHT = 0.5
"""The score of the best match by words. The best match of semantic recall has the score 1."""
NEIGHBOUR_WEIGHT = 0.3
"""The share of an observation's score that is added to the scores of its two neighbours."""
REPEATED_SHARE = 0.8
"""An observation is left out if a message of the context has at least this share of its words."""
ROLE_WORDS = frozenset({"user", "assistant"})
"""Words that observations have instead of the name of a speaker."""
MAX_COMPARED_CHARS = 10_000
"""How much of a message is compared with the observations."""
TOKENS_PER_HEADING = 16
"""Tokens of a date heading, with the relative date and the note about the days without messages."""
PRIORITY_SCORES = {"high": 0.02, "done": 0.02, "medium": 0.01}
"""These decide between equal matches."""
# The usual constants of BM25. Observations are short, so the length matters little.
_SATURATION, _LENGTH_SHARE = 1.2, 0.5

Minute = tuple[date, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """What the observations are chosen for."""

    text: str = ""
    """The last message of the user."""
    scored: Sequence[ScoredMessage] = ()
    """The matches of semantic recall with their scores."""
    included: Sequence[StoredMessage] = ()
    """Messages that are in the context. Their observations are left out."""
    timezone: tzinfo
    """The time zone of the log."""
    words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", frozenset(_list_words(self.text)))

    def score_minutes(self) -> dict[Minute, float]:
        """Return the best score of the matches in each minute, scaled to at most 1."""
        if not self.scored:
            return {}
        values = [message.score for message in self.scored]
        lowest, highest = min(values), max(values)
        scores: dict[Minute, float] = {}
        for message in self.scored:
            scaled = (message.score - lowest) / (highest - lowest) if highest > lowest else 1.0
            minute = _get_minute_of_timestamp(message.created, self.timezone)
            scores[minute] = max(scaled, scores.get(minute, 0.0))
        return scores

    def list_included_words(self) -> dict[Minute, set[str]]:
        """Return the words of the included messages by minute."""
        words: dict[Minute, set[str]] = {}
        for message in self.included:
            minute = _get_minute_of_timestamp(message.created_at.timestamp(), self.timezone)
            text = message_text.get_text(message.content)[:MAX_COMPARED_CHARS]
            words.setdefault(minute, set()).update(_list_words(text))
        return words


def _get_minute_of_timestamp(seconds: float, timezone: tzinfo) -> Minute:
    moment = datetime.fromtimestamp(seconds, timezone)
    return moment.date(), f"{moment:%H:%M}"


@lru_cache(maxsize=8_192)
def _list_words(text: str) -> tuple[str, ...]:
    """Return the words that tell something. Cached, as a log hardly changes between turns."""
    return tuple(word for word in sentences.list_words(text) if not sentences.is_common(word))


def select_observations(
    log: str, max_tokens: int, query: LogQuery, *, render: Callable[[str], str]
) -> str:
    """Return a log of the observations that fit, in their order, with their headings.

    Args:
        log: The whole log.
        max_tokens: The largest number of tokens of the rendered result.
        query: What to choose for.
        render: Returns the text of a log in the prompt.
    """
    counter = tokens.get_token_counter()
    lines = log.split("\n")
    items = [item for item in observation_log.get_items(log) if item.depth == 0]
    ranked = _rank_items(items, lines, query)
    # Counting the tokens of each item takes longer than everything else.
    tokens_per_character = counter.text(log) / max(len(log), 1)
    costs = {
        item.index: tokens_per_character * sum(map(len, lines[item.line : item.end]))
        for item in ranked
    }
    chosen = _fill(ranked, costs, max_tokens)
    # The costs are estimates, so the first result is used to correct the budget.
    excess = counter.text(render(_join_items(log, chosen))) - max_tokens if chosen else 0
    chosen = _fill(ranked, costs, max_tokens - excess)
    while chosen and counter.text(render(_join_items(log, chosen))) > max_tokens:
        del chosen[-max(1, len(chosen) // 30) :]
    return _join_items(log, chosen)


def _fill(ranked: Sequence[LogItem], costs: Mapping[int, float], budget: float) -> list[LogItem]:
    """Return the best items within the budget, best first."""
    chosen: list[LogItem] = []
    days: set[tuple[date | None, str | None]] = set()
    for item in ranked:
        key = (item.day, item.thread_id)
        cost = costs[item.index] + TOKENS_PER_HEADING * (key not in days)
        if cost <= budget:
            budget -= cost
            days.add(key)
            chosen.append(item)
    return chosen


def _rank_items(items: Sequence[LogItem], lines: Sequence[str], query: LogQuery) -> list[LogItem]:
    """Return the items that the context does not have yet, best first."""
    texts = [" ".join([item.text, *lines[item.line + 1 : item.end]]) for item in items]
    words = [_list_words(text) for text in texts]
    minutes = list(_find_minutes(items))
    by_minute = query.score_minutes()
    by_words = _score_words(words, query.words)
    direct = [
        WORDS_WEIGHT * score + (by_minute.get(minute, 0.0) if minute else 0.0)
        for score, minute in zip(by_words, minutes, strict=True)
    ]
    scores = [
        score
        + NEIGHBOUR_WEIGHT * sum(direct[max(index - 1, 0) : index] + direct[index + 1 : index + 2])
        + PRIORITY_SCORES.get(items[index].priority, 0.0)
        for index, score in enumerate(direct)
    ]
    included = query.list_included_words()
    new = [
        index
        for index, minute in enumerate(minutes)
        if not _is_included(words[index], included.get(minute) if minute else None)
    ]
    return [items[i] for i in sorted(new, key=lambda index: (scores[index], index), reverse=True)]


def _find_minutes(items: Sequence[LogItem]) -> Iterator[Minute | None]:
    """Yield the minute of each item. An item without a time has that of the item before it."""
    time = ""
    day: date | None = None
    for item in items:
        time = item.time.zfill(5) if item.time else time if item.day == day else ""
        day = item.day
        yield (day, time) if day and time else None


def _is_included(words: Sequence[str], included: set[str] | None) -> bool:
    distinct = set(words) - ROLE_WORDS
    if not included or not distinct:
        return False
    return len(distinct & included) >= REPEATED_SHARE * len(distinct)


def _score_words(documents: Sequence[Sequence[str]], query: frozenset[str]) -> list[float]:
    """Return the BM25 scores of the documents, scaled so that the best one is 1."""
    counts = [Counter(words) for words in documents]
    frequencies = Counter(word for count in counts for word in count if word in query)
    mean_length = sum(map(len, documents)) / max(len(documents), 1) or 1.0
    scores = []
    for count, words in zip(counts, documents, strict=True):
        length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * len(words) / mean_length
        score = 0.0
        for word in query & count.keys():
            rest = len(documents) - frequencies[word]
            rarity = math.log(1 + (rest + 0.5) / (frequencies[word] + 0.5))
            score += rarity * count[word] * (_SATURATION + 1) / (count[word] + _SATURATION * length)
        scores.append(score)
    best = max(scores, default=0.0) or 1.0
    return [score / best for score in scores]


def _join_items(log: str, chosen: Sequence[LogItem]) -> str:
    """Return a log of these items with the headings, groups and threads that they are in."""
    lines = log.split("\n")
    groups = [line for line in lines if line.startswith("<observation-group ")]
    parts: list[str] = []
    tags: list[str] = []
    day: date | None = None
    for item in sorted(chosen, key=lambda item: item.index):
        if (item_tags := _find_tags(item, groups)) != tags:
            parts += [*_close(tags), *item_tags]
            tags, day = item_tags, None
        if item.day is not None and item.day != day:
            day = item.day
            parts.append(observation_log.format_heading(day))
        parts += lines[item.line : item.end]
    return "\n".join([*parts, *_close(tags)])


def _find_tags(item: LogItem, groups: Sequence[str]) -> list[str]:
    """Return the opening tags of the group and the thread that an item is in."""
    tags = [line for line in groups if f' id="{item.group_id}"' in line][:1]
    if item.thread_id is not None:
        tags.append(observation_log.format_thread_tag(item.thread_id))
    return tags


def _close(tags: Sequence[str]) -> list[str]:
    return [f"</{tag[1:].split(' ', 1)[0]}>" for tag in reversed(tags)]
