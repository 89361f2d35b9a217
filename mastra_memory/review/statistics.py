"""Statistics of a team's work over some days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Aggregate, Count, DurationField, F, QuerySet
from django.utils import timezone

from mastra_memory.db import times
from mastra_memory.db.users import get_usernames
from mastra_memory.models import Review, Thread
from mastra_memory.review import queries, scores
from mastra_memory.review.reviews import OPEN_STATUSES
from mastra_memory.review.scores import ScoreSummary

MAX_ASSIGNEES = 12
MAX_COUNTED_THREADS = 200_000
"""Threads that are counted, newest first, so that the page stays fast on large databases."""


class Percentile(Aggregate):
    """PostgreSQL's `percentile_cont` of durations; `fraction` is between 0 and 1."""

    function = "percentile_cont"
    template = "%(function)s(%(fraction)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


@dataclass(frozen=True, slots=True)
class TeamStatistics:
    """Counts over some days, including today."""

    volume: Sequence[tuple[date, int]]
    """New conversations by day."""
    resolved: Sequence[tuple[date, int]]
    """Resolved conversations by day."""
    by_status: Sequence[tuple[str, int]]
    """Conversations with a review, by status. Conversations without a review do not count."""
    open_by_assignee: Sequence[tuple[str, int]]
    """Open reviews by user name, the longest queues first."""
    median_time: timedelta | None
    """Time from the start of a conversation to its resolution."""
    p90_time: timedelta | None
    """Nine of ten conversations were resolved faster than this."""
    scores: Sequence[ScoreSummary]
    limited: bool
    """True if there were more conversations than `MAX_COUNTED_THREADS`."""


def compute_statistics(threads: QuerySet[Thread], *, days: int) -> TeamStatistics:
    """Compute the statistics of the last `days` days in a fixed number of queries."""
    since = _get_start_of_today() - timedelta(days=days - 1)
    recent = threads.filter(created_at__gte=since).order_by("-created_at", "-pk")
    volume = queries.count_by_day(recent.values("created_at")[:MAX_COUNTED_THREADS], "created_at")
    reviews = Review.objects.all()
    if threads.query.where:  # an unrestricted user's threads need no subquery
        reviews = reviews.filter(thread__in=threads.order_by().values("pk"))
    resolved = reviews.filter(resolved_at__gte=since)
    by_status = dict(reviews.values_list("status").annotate(n=Count("pk")).order_by())
    times = resolved.annotate(span=F("resolved_at") - F("thread__created_at")).aggregate(
        median=Percentile("span", fraction=0.5), p90=Percentile("span", fraction=0.9)
    )
    return TeamStatistics(
        volume=_fill_missing_days(volume, since, days),
        resolved=_fill_missing_days(
            queries.count_by_day(resolved.values("resolved_at"), "resolved_at"), since, days
        ),
        by_status=[(key, by_status.get(key, 0)) for key in Review.Status.values],
        open_by_assignee=_count_open_by_assignee(reviews),
        median_time=times["median"],
        p90_time=times["p90"],
        scores=scores.summarize_scores(threads if threads.query.where else None),
        limited=sum(volume.values()) >= MAX_COUNTED_THREADS,
    )


def _get_start_of_today() -> datetime:
    today = timezone.localdate(times.now())
    return timezone.make_aware(datetime.combine(today, time()))


def _count_open_by_assignee(reviews: QuerySet[Review]) -> list[tuple[str, int]]:
    assigned = reviews.filter(status__in=OPEN_STATUSES, assignee_id__isnull=False)
    counts: QuerySet[Any, Any] = assigned.values_list("assignee_id").annotate(n=Count("pk"))
    longest = list(counts.order_by("-n", "assignee_id")[:MAX_ASSIGNEES])
    names = get_usernames(user_id for user_id, _count in longest)
    named = [(names.get(user_id, "–"), count) for user_id, count in longest]
    return sorted(named, key=lambda row: (-row[1], row[0]))


def _fill_missing_days(
    counts: dict[date, int], since: datetime, days: int
) -> list[tuple[date, int]]:
    """Return a count for every day, 0 for days without rows."""
    first = timezone.localdate(since)
    all_days = [first + timedelta(days=n) for n in range(days)]
    return [(day, counts.get(day, 0)) for day in all_days]
