"""The history of observational memory: what ran when, and what it cost."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import IdField, InstantField, JsonTypeIs, new_id
from mastra_memory.models.observational_record import ObservationalRecord


class ObservationEvent(models.Model):
    """One operation on an observational record.

    `data` has the shape of the markers that Mastra writes into messages, in camelCase.
    """

    class Operation(models.TextChoices):
        """What was done."""

        OBSERVATION = "observation", _("observation")
        BUFFERING = "buffering", _("buffering")
        ACTIVATION = "activation", _("activation")
        REFLECTION = "reflection", _("reflection")
        REFLECTION_BUFFERING = "reflection_buffering", _("buffering of a reflection")
        EDIT = "edit", _("edit")
        TITLE = "title", _("title")

    class State(models.TextChoices):
        """How far the operation has come."""

        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        DISCARDED = "discarded", _("discarded")

    id = models.BigAutoField(primary_key=True)
    record = models.ForeignKey(
        ObservationalRecord,
        models.DO_NOTHING,
        related_name="events",
        db_constraint=False,  # migration 0003 adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("record"),
    )
    """The generation that was live when the operation started."""
    thread_id = IdField(_("thread"), null=True, blank=True)
    cycle_id = models.TextField(_("cycle"), default=new_id)
    operation = models.CharField(_("operation"), max_length=24, choices=Operation)
    state = models.CharField(
        _("state"), max_length=16, choices=State, default=State.RUNNING, db_default="running"
    )
    started_at = InstantField(_("started"), db_default=Now())
    finished_at = InstantField(_("finished"), null=True, blank=True)
    data = models.JSONField(_("data"), default=dict, blank=True)
    error = models.TextField(_("error"), blank=True, default="", db_default="")
    tokens_in = models.IntegerField(_("input tokens"), default=0, db_default=0)
    tokens_out = models.IntegerField(_("output tokens"), default=0, db_default=0)
    cost = models.DecimalField(_("cost"), max_digits=16, decimal_places=8, null=True, blank=True)
    user_name = models.TextField(_("user"), blank=True, default="", db_default="")
    """The name of the person who started the operation; empty for automatic ones."""

    class Meta:
        verbose_name = _("observation event")
        verbose_name_plural = _("observation events")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state="running", finished_at=None)
                | models.Q(state__in=["done", "failed", "discarded"], finished_at__isnull=False),
                name="mastra_om_event_state",
            ),
            models.CheckConstraint(
                condition=models.Q(JsonTypeIs("data", "object")), name="mastra_om_event_data"
            ),
        ]
        indexes = [
            models.Index(fields=["record", "started_at", "id"], name="mastra_om_event_record"),
            models.Index(
                fields=["started_at"],
                condition=models.Q(state="running"),
                name="mastra_om_event_running",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.operation} · {self.state}"
