"""Scores: how reviewers rate a thread by the criteria of the rubric, and how far they agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from mastra_memory.db import locking, routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.db.users import get_user_id, get_usernames
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Criterion, Score, Thread, ThreadChange
from mastra_memory.review import history, queries
from mastra_memory.review.history import ChangeInput


@dataclass(frozen=True, slots=True)
class RubricQuestion:
    """A criterion with the answers for one thread."""

    criterion: Criterion
    own_answer: str
    """The current user's answer, empty if there is none."""
    answers: Sequence[tuple[str, str]]
    """User name and answer of each reviewer."""
    average: float | None
    """Mean of the answers on a scale from 0 (worst) to 1 (best)."""
    agreement: float | None
    """1 if all answers are equal, 0 if they are as far apart as possible; None without a pair."""


def list_questions(thread_id: str, user: Any) -> list[RubricQuestion]:
    """Return the active criteria with the answers for the thread."""
    scores = list(Score.objects.filter(thread_id=thread_id))
    names = get_usernames(score.author_id for score in scores)
    return [
        _build_question(
            criterion, [s for s in scores if s.criterion_id == criterion.pk], user, names
        )
        for criterion in Criterion.objects.filter(active=True)
    ]


def _build_question(
    criterion: Criterion, scores: list[Score], user: Any, names: Mapping[str, str]
) -> RubricQuestion:
    own_id = get_user_id(user)
    shares = [float(score.share) for score in scores]
    return RubricQuestion(
        criterion,
        own_answer=next((score.answer for score in scores if score.author_id == own_id), ""),
        answers=[(names.get(score.author_id, "–"), score.answer) for score in scores],
        average=sum(shares) / len(shares) if shares else None,
        agreement=_compute_agreement(shares),
    )


def _compute_agreement(shares: list[float]) -> float | None:
    """Return 1 minus the mean distance of all pairs, or None without a pair."""
    if len(shares) < 2:
        return None
    distances = [abs(a - b) for i, a in enumerate(shares) for b in shares[i + 1 :]]
    return 1 - sum(distances) / len(distances)


@retry_conflicts
@routing.atomic
def save_scores(thread_id: str, answers: Mapping[int, str], *, by: Any) -> int:
    """Save the user's answers by criterion key; an empty answer deletes the score.

    Unknown and inactive criteria are ignored. Return how many answers changed.

    Raises:
        InvalidInput: A criterion does not offer the answer. Nothing is saved.
        ThreadNotFound: The thread was deleted meanwhile.
    """
    if not answers:
        return 0
    locking.lock_thread(thread_id, "KEY SHARE")
    criteria = {c.pk: c for c in Criterion.objects.filter(pk__in=answers, active=True)}
    scores = {s.criterion_id: s for s in Score.objects.filter(thread_id=thread_id, author_id=by.pk)}
    changes = []
    for pk, criterion in criteria.items():
        answer, before = answers[pk], scores[pk].answer if pk in scores else ""
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
    return len(changes)


def _save_answer(thread_id: str, criterion: Criterion, answer: str, by: Any) -> None:
    if not answer:
        Score.objects.filter(thread_id=thread_id, criterion=criterion, author_id=by.pk).delete()
        return
    if answer not in dict(criterion.answers):
        names = {"name": criterion.name, "answer": answer}
        raise InvalidInput(_("%(name)s has no answer “%(answer)s”.") % names)
    Score.objects.update_or_create(
        thread_id=thread_id,
        criterion=criterion,
        author_id=by.pk,
        defaults={"answer": answer, "share": criterion.share_of(answer)},
    )


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """The scores of many threads for one criterion."""

    name: str
    scores: int
    average: float
    """Mean of the answers on a scale from 0 (worst) to 1 (best)."""
    agreement: float | None
    """Over the threads that at least two reviewers scored; None if there are none."""


def summarize_scores(threads: QuerySet[Thread] | None = None) -> list[ScoreSummary]:
    """Return a summary for each criterion with scores, over `threads` or over all threads."""
    return [ScoreSummary(*row) for row in queries.summarize_scores(threads)]
