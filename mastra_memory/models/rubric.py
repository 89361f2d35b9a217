"""The rubric that threads are scored by, and the scores."""

from decimal import Decimal

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import AwareDateTimeField, UserIdField
from mastra_memory.models.thread import Thread


class Criterion(models.Model):
    """A question of the rubric.

    Changing the scale does not change existing scores.
    """

    class Kind(models.TextChoices):
        """Types of answers."""

        NUMBER = "number", _("number")
        CHOICE = "choice", _("choice")
        YES_NO = "yes_no", _("yes or no")

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(_("name"), max_length=100, unique=True)
    help_text = models.CharField(_("what to look for"), max_length=300, blank=True)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind, default=Kind.NUMBER)
    minimum = models.IntegerField(_("lowest number"), default=1)
    maximum = models.IntegerField(_("highest number"), default=5)
    choices = models.TextField(_("choices"), blank=True, help_text=_("One per line, best first."))
    position = models.PositiveSmallIntegerField(_("position"), default=0)
    active = models.BooleanField(_("in use"), default=True)

    class Meta:
        verbose_name = _("criterion")
        verbose_name_plural = _("rubric")
        ordering = ["position", "name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(maximum__gt=models.F("minimum"))
                & models.Q(maximum__lte=models.F("minimum") + 100),
                name="mastra_criterion_scale",
                violation_error_message=_("The scale needs 2 to 101 steps."),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def answers(self) -> list[tuple[str, str]]:
        """Return the possible answers as pairs of stored value and label."""
        if self.kind == self.Kind.YES_NO:
            return [("yes", str(_("yes"))), ("no", str(_("no")))]
        if self.kind == self.Kind.CHOICE:
            lines = [line.strip() for line in self.choices.splitlines() if line.strip()]
            return [(line, line) for line in lines]
        return [(str(n), str(n)) for n in range(self.minimum, self.maximum + 1)]

    def share_of(self, answer: str) -> Decimal:
        """Return the answer on a scale from 0 (worst) to 1 (best)."""
        if self.kind == self.Kind.NUMBER:
            return Decimal(int(answer) - self.minimum) / (self.maximum - self.minimum)
        values = [value for value, _label in self.answers]
        return 1 - Decimal(values.index(answer)) / max(len(values) - 1, 1)


class Score(models.Model):
    """The answer of one reviewer for one thread."""

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        related_name="scores",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
    )
    criterion = models.ForeignKey(
        Criterion, models.CASCADE, related_name="scores", verbose_name=_("criterion")
    )
    author_id = UserIdField(_("author"), db_index=True)
    answer = models.CharField(_("answer"), max_length=100)
    share = models.DecimalField(_("share"), max_digits=6, decimal_places=5)
    """The answer from 0 (worst) to 1 (best), so that different criteria can be averaged."""
    created_at = AwareDateTimeField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("score")
        verbose_name_plural = _("scores")
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "criterion", "author_id"], name="mastra_score_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.thread_id} · {self.answer}"
