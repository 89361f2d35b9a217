"""Tokens and cost of calls to models."""

from datetime import datetime
from typing import Any, Self

from django.db import models
from django.db.models.functions import Now, TruncDate
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import IdField, InstantField
from mastra_memory.models.thread import Thread


class ModelUsageQuerySet(models.QuerySet["ModelUsage"]):
    """Filters and sums of model calls."""

    def of_thread(self, thread_id: str) -> Self:
        """Return the calls that were made for a thread."""
        return self.filter(thread_id=thread_id)

    def between(self, start: datetime, end: datetime) -> Self:
        """Return the calls from `start` to before `end`."""
        return self.filter(created_at__gte=start, created_at__lt=end)

    def totals(self) -> dict[str, Any]:
        """Return the sums: `calls`, `input_tokens`, `output_tokens` and `cost`.

        The cost is None if no call has a known price.
        """
        sums = self.aggregate(**_TOTALS)
        return {name: value or 0 for name, value in sums.items()} | {"cost": sums["cost"]}

    def per_day(self) -> Any:
        """Return the same sums for each day (UTC) and model, newest day first."""
        days = self.annotate(day=TruncDate("created_at")).values("day", "model")
        return days.annotate(**_TOTALS).order_by("-day", "model")


class ModelUsage(models.Model):
    """One call to a model.

    When its thread is deleted, thread and resource become null. Tokens and cost are kept for the
    totals, but no longer identify a person.
    """

    class Purpose(models.TextChoices):
        """Purposes of calls."""

        TITLE = "title", _("title")
        SUMMARY = "summary", _("summary")
        EXTRACTION = "extraction", _("extraction")
        OBSERVATION = "observation", _("observation")
        REFLECTION = "reflection", _("reflection")
        EMBEDDING = "embedding", _("embedding")

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="model_usage",
        db_constraint=False,  # migration 0002 adds (thread, resource) with ON DELETE SET NULL
        verbose_name=_("thread"),
    )
    resource_id = IdField(_("resource"), null=True, blank=True)
    purpose = models.CharField(_("purpose"), max_length=16, choices=Purpose)
    model = models.TextField(_("model"))
    """`provider/model`, as requested."""
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    cost = models.DecimalField(
        _("cost in US dollars"), max_digits=16, decimal_places=8, null=True, blank=True
    )
    """None if the price of the model is unknown."""
    created_at = InstantField(_("created"), db_default=Now())

    objects = ModelUsageQuerySet.as_manager()

    class Meta:
        verbose_name = _("model usage")
        verbose_name_plural = _("model usage")
        indexes = [
            models.Index(fields=["created_at"], name="mastra_usage_created"),
            models.Index(fields=["resource_id", "created_at"], name="mastra_usage_resource"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose}: {self.model}"


_TOTALS: dict[str, Any] = {
    "calls": models.Count("pk"),
    "input_tokens": models.Sum("input_tokens"),
    "output_tokens": models.Sum("output_tokens"),
    "cost": models.Sum("cost"),
}
