"""What a team did over the last days, counted in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Count, QuerySet
from django.utils import timezone

from mastra_memory.db import sql
from mastra_memory.models import Review, Thread
from mastra_memory.review import scores
from mastra_memory.review.reviews import OPEN_STATUSES
from mastra_memory.review.scores import ScoreSummary

MAX_ASSIGNEES = 12
MAX_COUNTED_THREADS = 200_000
"""Threads of the time that are counted, newest first."""


@dataclass(frozen=True, slots=True)
class TeamStatistics:
    """Counts over some days, today included."""

    volume: Sequence[tuple[date, int]]
    """Conversations begun."""
    resolved: Sequence[tuple[date, int]]
    by_status: Sequence[tuple[str, int]]
    """Reviewed conversations; new ones nobody touched are not counted."""
    open_by_assignee: Sequence[tuple[str, int]]
    median_time: timedelta | None
    """From a conversation's beginning to its resolution."""
    p90_time: timedelta | None
    """Nine of ten were resolved faster."""
    scores: Sequence[ScoreSummary]
    limited: bool
    """True when there were more conversations than are counted."""


def compute_statistics(threads: QuerySet[Thread], *, days: int) -> TeamStatistics:
    """Count; a fixed number of statements."""
    since = _start_of_today() - timedelta(days=days - 1)
    begun = threads.filter(created_at__gte=since).order_by("-created_at", "-pk")
    counted = begun.values("created_at")[:MAX_COUNTED_THREADS]
    by_day = _count_per_day(counted, "created_at")
    reviews = Review.objects.all()
    scored: tuple[str, tuple[object, ...]] = ("TRUE", ())
    if threads.query.where:
        visible = threads.order_by().values("pk")
        reviews = reviews.filter(thread__in=visible)
        statement, params = visible.query.sql_with_params()
        scored = (f"s.thread_id IN ({statement})", params)
    done = reviews.filter(resolved_at__gte=since)
    by_status = dict(reviews.values_list("status").annotate(n=Count("pk")).order_by())
    people = reviews.filter(status__in=OPEN_STATUSES, assignee__isnull=False)
    username = f"assignee__{get_user_model().USERNAME_FIELD}"
    per_person = people.values_list(username).annotate(n=Count("pk")).order_by("-n", username)
    median, slow = _compute_resolution_times(done)
    return TeamStatistics(
        volume=_fill_missing_days(by_day, since, days),
        resolved=_fill_missing_days(
            _count_per_day(done.values("resolved_at"), "resolved_at"), since, days
        ),
        by_status=[(key, by_status.get(key, 0)) for key in Review.Status.values],
        open_by_assignee=list(per_person[:MAX_ASSIGNEES]),
        median_time=median,
        p90_time=slow,
        scores=scores.summarize_scores(*scored),
        limited=sum(by_day.values()) >= MAX_COUNTED_THREADS,
    )


def _start_of_today() -> datetime:
    today = timezone.localdate()
    return timezone.make_aware(datetime.combine(today, time()))


def _count_per_day(rows: QuerySet[Any, Any], column: str) -> dict[date, int]:
    statement, params = rows.query.sql_with_params()
    zone = timezone.get_current_timezone_name()
    found = sql.fetch_all(
        f"SELECT ({column} AT TIME ZONE %s)::date, count(*) FROM ({statement}) r GROUP BY 1",
        [zone, *params],
    )
    return dict(found)


def _fill_missing_days(
    counts: dict[date, int], since: datetime, days: int
) -> list[tuple[date, int]]:
    """Every day, those without anything too."""
    first = timezone.localdate(since)
    return [(day, counts.get(day, 0)) for n in range(days) for day in [first + timedelta(days=n)]]


def _compute_resolution_times(done: QuerySet[Review]) -> tuple[timedelta | None, timedelta | None]:
    statement, params = done.values("resolved_at", "thread__created_at").query.sql_with_params()
    found = sql.fetch_one(
        f"""SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY span),
            percentile_cont(0.9) WITHIN GROUP (ORDER BY span)
        FROM (SELECT resolved_at - created_at AS span
            FROM ({statement}) AS r (resolved_at, created_at)) s""",
        params,
    )
    return (found[0], found[1]) if found else (None, None)
