"""Statistics of the team: volume, status, time to resolution, scores, workload."""

from typing import Any

from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mastra_memory.admin import access, charts
from mastra_memory.admin.timeline import format_duration
from mastra_memory.models import Review
from mastra_memory.review import statistics

RANGES_IN_DAYS = (7, 28, 91)


def _get_days(request: HttpRequest) -> int:
    asked = request.GET.get("days", "")
    return int(asked) if asked in {str(days) for days in RANGES_IN_DAYS} else 28


def get_statistics(request: HttpRequest) -> dict[str, Any]:
    """Return the template context of the page, for the threads that the user may see."""
    days = _get_days(request)
    found = statistics.compute_statistics(access.visible_threads(request), days=days)
    labels = dict(Review.Status.choices)
    statuses = [(str(labels[key]), float(n), str(n)) for key, n in found.by_status]
    people = [(name, float(n), str(n)) for name, n in found.open_by_assignee]
    scores = [
        (score.name, score.average, _format_score(score.average, score.agreement, score.scores))
        for score in found.scores
    ]
    return {
        "ranges": RANGES_IN_DAYS,
        "days": days,
        "volume": charts.draw_column_chart([(_format_day(day), n) for day, n in found.volume]),
        "resolved": charts.draw_column_chart([(_format_day(day), n) for day, n in found.resolved]),
        "statuses": charts.draw_bar_chart(statuses),
        "people": charts.draw_bar_chart(people),
        "scores": charts.draw_bar_chart(scores, top=1.0),
        "median_time": format_duration(found.median_time) if found.median_time else "",
        "slow_time": format_duration(found.p90_time) if found.p90_time else "",
        "resolved_count": sum(n for _day_, n in found.resolved),
        "volume_count": sum(n for _day_, n in found.volume),
        "limited": found.limited,
    }


def _format_day(day: Any) -> str:
    return date_format(day, "j M")


def _format_score(average: float, agreement: float | None, scores: int) -> str:
    text = ngettext(
        "%(average)d %% of the maximum, %(scores)d score",
        "%(average)d %% of the maximum, %(scores)d scores",
        scores,
    )
    shown = text % {"average": round(average * 100), "scores": scores}
    if agreement is not None:
        shown += ", " + _("agreement %d %%") % round(agreement * 100)
    return shown
