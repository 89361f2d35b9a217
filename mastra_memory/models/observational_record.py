"""Observations about a thread or a resource, and chunks that wait for activation."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import IdField, InstantField, id_length_is_valid, new_id
from mastra_memory.models.thread import Thread
from mastra_memory.models.working_memory import Scope, scope_matches_thread


class ObservationalRecordQuerySet(models.QuerySet["ObservationalRecord"]):
    """Filters for observational records."""

    def about_thread(self, thread_id: str) -> Self:
        """Return the generations of a thread."""
        return self.filter(scope=Scope.THREAD, thread_id=thread_id)

    def about_resource(self, resource_id: str) -> Self:
        """Return the generations of a resource."""
        return self.filter(scope=Scope.RESOURCE, resource_id=resource_id)

    def newest_first(self) -> Self:
        """Order by generation, newest first."""
        return self.order_by("-generation_count")


class ObservationalRecord(models.Model):
    """One generation of observations.

    Each reflection opens a new generation. The one with the highest number is current.
    """

    class Origin(models.TextChoices):
        """Reasons for a new generation."""

        INITIAL = "initial", _("initial")
        REFLECTION = "reflection", _("reflection")

    id = IdField(_("id"), primary_key=True, default=new_id)
    scope = models.CharField(_("scope"), max_length=8, choices=Scope)
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="observational_records",
        db_constraint=False,  # migration 0002 adds (thread, resource) with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("thread"),
    )
    resource_id = IdField(_("resource"))
    generation_count = models.PositiveIntegerField(_("generation"), default=0)
    origin_type = models.CharField(
        _("origin"), max_length=16, choices=Origin, default=Origin.INITIAL
    )
    active_observations = models.TextField(_("observations"), blank=True, default="")
    observation_token_count = models.IntegerField(_("observation tokens"), default=0)
    total_tokens_observed = models.BigIntegerField(_("tokens observed"), default=0)
    pending_message_tokens = models.BigIntegerField(_("pending tokens"), default=0)
    last_observed_at = InstantField(_("observed up to"), null=True, blank=True)
    """The cursor: messages up to this time are observed."""
    observed_message_ids = models.JSONField(null=True, blank=True)
    observed_timezone = models.TextField(blank=True, default="")
    last_buffered_at_tokens = models.BigIntegerField(default=0)
    last_buffered_at_time = InstantField(null=True, blank=True)
    buffered_reflection = models.TextField(blank=True, default="")
    buffered_reflection_tokens = models.IntegerField(null=True, blank=True)
    buffered_reflection_input_tokens = models.IntegerField(null=True, blank=True)
    reflected_observation_line_count = models.IntegerField(null=True, blank=True)
    config = models.JSONField(default=dict, blank=True)
    metadata = models.JSONField(null=True, blank=True)
    # Leases: work is in progress until these times. The lease of a killed worker expires.
    observing_until = models.DateTimeField(null=True, blank=True)
    reflecting_until = models.DateTimeField(null=True, blank=True)
    buffering_observation_until = models.DateTimeField(null=True, blank=True)
    buffering_reflection_until = models.DateTimeField(null=True, blank=True)
    created_at = InstantField(_("created"), db_default=Now())
    updated_at = InstantField(_("updated"), db_default=Now())

    objects = ObservationalRecordQuerySet.as_manager()

    class Meta:
        verbose_name = _("observational record")
        verbose_name_plural = _("observational records")
        constraints = [
            scope_matches_thread("mastra_om_scope"),
            id_length_is_valid("mastra_om_ids", "id", "resource_id"),
            models.UniqueConstraint(
                fields=["thread", "generation_count"],
                condition=models.Q(thread__isnull=False),
                name="mastra_om_thread_generation",
            ),
            models.UniqueConstraint(
                fields=["resource_id", "generation_count"],
                condition=models.Q(thread__isnull=True),
                name="mastra_om_resource_generation",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id or self.resource_id} · {self.generation_count}"

    @property
    def is_observing(self) -> bool:
        """Return True while a worker writes observations."""
        return _is_held(self.observing_until)

    @property
    def is_reflecting(self) -> bool:
        """Return True while a worker writes a reflection."""
        return _is_held(self.reflecting_until)

    @property
    def is_buffering_observation(self) -> bool:
        """Return True while a worker prepares a chunk."""
        return _is_held(self.buffering_observation_until)

    @property
    def is_buffering_reflection(self) -> bool:
        """Return True while a worker prepares a reflection."""
        return _is_held(self.buffering_reflection_until)


def _is_held(until: datetime | None) -> bool:
    return until is not None and until > timezone.now()


class ObservationChunk(models.Model):
    """An observation that was prepared in advance. It is not used until it is activated."""

    id = IdField(_("id"), primary_key=True)
    record = models.ForeignKey(
        ObservationalRecord,
        models.DO_NOTHING,
        related_name="chunks",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("record"),
    )
    position = models.PositiveIntegerField(_("position"))
    """The position among the chunks of the record, oldest first."""
    cycle_id = models.TextField(_("cycle"))
    observations = models.TextField(_("observations"))
    token_count = models.IntegerField(_("tokens"))
    message_ids = models.JSONField(_("messages"), default=list)
    message_tokens = models.IntegerField(_("message tokens"))
    last_observed_at = InstantField(_("observed up to"))
    hints = models.JSONField(_("hints"), default=dict, blank=True)
    """`currentTask`, `suggestedContinuation`, `threadTitle`, `extractedValues` and
    `extractionFailures`, if the Observer returned them."""
    created_at = InstantField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("observation chunk")
        verbose_name_plural = _("observation chunks")
        constraints = [
            id_length_is_valid("mastra_chunk_id", "id"),
            models.UniqueConstraint(fields=["record", "position"], name="mastra_chunk_position"),
        ]

    def __str__(self) -> str:
        return str(self.id)
