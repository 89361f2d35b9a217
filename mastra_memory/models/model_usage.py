"""What calls to models used: tokens and money, one row a call."""

from datetime import datetime
from typing import Any, Self

from django.db import models
from django.db.models.functions import Now, TruncDate
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import IdField, InstantField
from mastra_memory.models.thread import Thread


class ModelUsageQuerySet(models.QuerySet["ModelUsage"]):
    """Calls, read aloud."""

    def of_thread(self, thread_id: str) -> Self:
        return self.filter(thread_id=thread_id)

    def between(self, start: datetime, end: datetime) -> Self:
        return self.filter(created_at__gte=start, created_at__lt=end)

    def totals(self) -> dict[str, Any]:
        """`calls`, `input_tokens`, `output_tokens`, `cost` of all these calls together."""
        sums = self.aggregate(**_SUMS)
        return {name: value or 0 for name, value in sums.items()} | {"cost": sums["cost"]}

    def per_day(self) -> Any:
        """The same for every day (UTC) and model, newest day first."""
        days = self.annotate(day=TruncDate("created_at")).values("day", "model")
        return days.annotate(**_SUMS).order_by("-day", "model")


class ModelUsage(models.Model):
    """One call to a model.

    When its thread goes, the numbers stay and the names of thread and resource go: money spent
    stays spent, and nobody can be told from it.
    """

    class Purpose(models.TextChoices):
        """What the call was for."""

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
        db_constraint=False,  # the migration adds (thread, resource) with ON DELETE SET NULL
        verbose_name=_("thread"),
    )
    resource_id = IdField(_("resource"), null=True, blank=True)
    purpose = models.CharField(_("purpose"), max_length=16, choices=Purpose)
    model = models.TextField(_("model"))
    """`provider/model`, as it was asked for."""
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    cost = models.DecimalField(
        _("cost in US dollars"), max_digits=16, decimal_places=8, null=True, blank=True
    )
    """Nothing when the price of the model is not known."""
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


_SUMS: dict[str, Any] = {
    "calls": models.Count("pk"),
    "input_tokens": models.Sum("input_tokens"),
    "output_tokens": models.Sum("output_tokens"),
    "cost": models.Sum("cost"),
}
