"""Scores: what reviewers answer about a thread, averages, and how far they agree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from mastra_memory.db import routing, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Criterion, Score, ThreadChange
from mastra_memory.review import history
from mastra_memory.review.history import ChangeInput


@dataclass(frozen=True, slots=True)
class RubricQuestion:
    """A criterion, what the reader of the page answered, and what everybody did."""

    criterion: Criterion
    mine: str
    given: list[tuple[str, str]]
    """Author and answer."""
    average: float | None
    """Share of the best answer, 0 to 1."""
    agreement: float | None
    """1 when all say the same, 0 when they are as far apart as can be; None for fewer than two."""


def list_questions(thread_id: str, user: Any) -> list[RubricQuestion]:
    """The rubric with the answers about a thread."""
    scores = list(Score.objects.filter(thread_id=thread_id).select_related("author"))
    return [
        _build_question(criterion, [s for s in scores if s.criterion_id == criterion.pk], user)
        for criterion in Criterion.objects.filter(active=True)
    ]


def _build_question(criterion: Criterion, scores: list[Score], user: Any) -> RubricQuestion:
    shares = [float(score.share) for score in scores]
    mine = next((score.answer for score in scores if score.author_id == user.pk), "")
    given = [(score.author.get_username(), score.answer) for score in scores]
    average = sum(shares) / len(shares) if shares else None
    return RubricQuestion(criterion, mine, given, average, _compute_agreement(shares))


def _compute_agreement(shares: list[float]) -> float | None:
    if len(shares) < 2:
        return None
    pairs = [abs(a - b) for i, a in enumerate(shares) for b in shares[i + 1 :]]
    return 1 - sum(pairs) / len(pairs)


@retry_conflicts
@routing.atomic
def save_scores(thread_id: str, answers: Mapping[int, str], *, by: Any) -> None:
    """Set one person's answers by criterion; an empty answer takes the score away.

    Raises `InvalidInput` for an answer that the criterion does not know.
    """
    criteria = {c.pk: c for c in Criterion.objects.filter(pk__in=answers, active=True)}
    old = {s.criterion_id: s for s in Score.objects.filter(thread_id=thread_id, author=by)}
    changes = []
    for pk, criterion in criteria.items():
        answer, before = answers[pk], old[pk].answer if pk in old else ""
        if answer == before:
            continue
        _save_answer(thread_id, criterion, answer, by)
        changes.append(
            ChangeInput(
                thread_id=thread_id,
                kind=ThreadChange.Kind.SCORE,
                before={criterion.name: before} if before else None,
                after={criterion.name: answer} if answer else None,
            )
        )
    history.record_changes(by, *changes)


def _save_answer(thread_id: str, criterion: Criterion, answer: str, by: Any) -> None:
    if not answer:
        Score.objects.filter(thread_id=thread_id, criterion=criterion, author=by).delete()
        return
    if answer not in dict(criterion.answers):
        told = {"name": criterion.name, "answer": answer}
        raise InvalidInput(_("%(name)s has no answer “%(answer)s”.") % told)
    Score.objects.update_or_create(
        thread_id=thread_id,
        criterion=criterion,
        author=by,
        defaults={"answer": answer, "share": criterion.share_of(answer)},
    )


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """What was answered to one criterion over many threads."""

    name: str
    scores: int
    average: float
    agreement: float | None
    """Over the threads that two or more people scored."""


def summarize_scores(
    thread_ids_sql: str = "TRUE", params: tuple[Any, ...] = ()
) -> list[ScoreSummary]:
    """Averages and agreement by criterion, over the threads that the condition keeps.

    The condition speaks of `s.thread_id`.
    """
    found = sql.fetch_all(
        f"""WITH kept AS (SELECT s.* FROM mastra_memory_score s WHERE {thread_ids_sql}),
        apart AS (
            SELECT a.criterion_id, avg(abs(a.share - b.share)) AS apart
            FROM kept a JOIN kept b ON b.thread_id = a.thread_id
                AND b.criterion_id = a.criterion_id AND b.id > a.id GROUP BY 1)
        SELECT c.name, count(*), avg(k.share), 1 - max(a.apart)
        FROM kept k JOIN mastra_memory_criterion c ON c.id = k.criterion_id
        LEFT JOIN apart a ON a.criterion_id = k.criterion_id
        GROUP BY c.id, c.name, c.position ORDER BY c.position, c.name""",
        params,
    )
    return [
        ScoreSummary(name, n, float(mean), None if agreed is None else float(agreed))
        for name, n, mean, agreed in found
    ]
