"""Prefer messages of the time that a query names, such as `last week`.

`expressions` finds these times. Messages from other times still match: a message about May may
have been written in June.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from django.utils import timezone

from mastra_memory import conf
from mastra_memory.db import json_text, sql
from mastra_memory.options import TimeOptions
from mastra_memory.search.times import expressions
from mastra_memory.search.types import ScoredMessage
from mastra_memory.types import TimeRange

TIME_WEIGHT = 0.6
"""What is added to the score of a message in the range, as a share of the difference between the
best and the lowest score. From 0.4 to 1.0 the results for LoCoMo hardly differ."""


def interpret_time(query: str, options: TimeOptions | None) -> list[TimeRange]:
    """Return the ranges of time that a query names; none if `options` is None.

    The languages are those of `SEARCH_TIME_LANGUAGES`.
    """
    languages = conf.app_settings().SEARCH_TIME_LANGUAGES
    if options is None or not languages:
        return []
    zone = options.zone or timezone.get_current_timezone()
    now = options.now or datetime.now(UTC)
    if timezone.is_naive(now):
        now = now.replace(tzinfo=zone)
    return expressions.find_time_ranges(
        json_text.clean_text(query), now=now, languages=languages, zone=zone
    )


def boost_matches(
    matches: Sequence[ScoredMessage], ranges: Sequence[TimeRange]
) -> list[ScoredMessage]:
    """Return the matches, best first, after adding to the scores of those in a range.

    The sums are scaled so that no score is higher than the best one was.
    """
    if not matches:
        return []
    scores = [match.score for match in matches]
    best, lowest = max(scores), min(scores)
    # Similarities of unrelated texts are far from 0, so the boost depends on the differences. If
    # all scores are equal, half of the best one is used instead, or 1 if all are 0.
    boost = TIME_WEIGHT * (max(best - lowest, best / 2) or 1.0)
    boosted = [
        match._replace(score=match.score + boost) if _is_in_a_range(match, ranges) else match
        for match in matches
    ]
    highest = max(match.score for match in boosted)
    if highest > best > 0:
        boosted = [match._replace(score=match.score * best / highest) for match in boosted]
    return sorted(boosted, key=lambda match: match.rank, reverse=True)


def _is_in_a_range(match: ScoredMessage, ranges: Sequence[TimeRange]) -> bool:
    return any(item.contains(match.created) for item in ranges)


def build_condition(ranges: Sequence[TimeRange]) -> sql.Where:
    """Return SQL that is true for messages `m` in a range."""
    where = sql.Where()
    conditions = " OR ".join("(m.created_at >= %s AND m.created_at < %s)" for _ in ranges)
    where.add(f"({conditions})", *(value for item in ranges for value in (item.start, item.end)))
    return where
