"""Observations about a thread or a resource, in generations."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.db import times
from mastra_memory.models.fields import (
    AwareDateTimeField,
    IdField,
    InstantField,
    JsonTypeIs,
    id_length_is_valid,
    new_id,
)
from mastra_memory.models.thread import Thread
from mastra_memory.models.working_memory import Scope, scope_matches_thread

if TYPE_CHECKING:
    from mastra_memory.models.observation_chunk import ObservationChunk


class ObservationalRecordQuerySet(models.QuerySet["ObservationalRecord"]):
    """Filters for observational records."""

    def about_thread(self, thread_id: str) -> Self:
        """Return the generations of a thread."""
        return self.filter(scope=Scope.THREAD, thread_id=thread_id)

    def about_resource(self, resource_id: str) -> Self:
        """Return the generations of a resource."""
        return self.filter(scope=Scope.RESOURCE, resource_id=resource_id)

    def live(self) -> Self:
        """Return the current generation of each thread or resource."""
        return self.filter(superseded_by=None)

    def newest_first(self) -> Self:
        """Order by generation, newest first."""
        return self.order_by("-generation_count")


def _lease_is_complete(prefix: str, operations: list[str]) -> models.CheckConstraint:
    """Return a constraint that a lease has a token, an operation and an end, or none of them."""
    names = (f"{prefix}_token", f"{prefix}_operation", f"{prefix}_expires_at")
    token, operation, end = names
    held = {f"{token}__isnull": False, f"{operation}__in": operations, f"{end}__isnull": False}
    free = {f"{token}__isnull": True, operation: "", f"{end}__isnull": True}
    return models.CheckConstraint(
        condition=models.Q(**held) | models.Q(**free), name=f"mastra_om_{prefix}_is_complete"
    )


class ObservationalRecord(models.Model):
    """One generation of observations.

    Each reflection, and each correction by a person, opens a new generation. The current one is
    called live: no other generation supersedes it. Each thread or resource has at most one.
    """

    class Origin(models.TextChoices):
        """Reasons for a new generation."""

        INITIAL = "initial", _("initial")
        REFLECTION = "reflection", _("reflection")
        EDIT = "edit", _("edited by a person")

    class Operation(models.TextChoices):
        """The work that the holder of a lease does."""

        OBSERVING = "observing", _("observing")
        REFLECTING = "reflecting", _("reflecting")
        BUFFERING = "buffering", _("buffering")

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
    created_by_name = models.TextField(_("created by"), blank=True, default="", db_default="")
    """The name of the person who corrected the observations."""
    superseded_by = models.ForeignKey(
        "self",
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        verbose_name=_("superseded by"),
    )
    """The next generation; null for the live one."""
    active_observations = models.TextField(_("observations"), blank=True, default="")
    observation_token_count = models.IntegerField(_("observation tokens"), default=0)
    total_tokens_observed = models.BigIntegerField(_("tokens observed"), default=0)
    pending_message_tokens = models.BigIntegerField(_("pending tokens"), default=0)
    last_observed_at = InstantField(_("observed up to"), null=True, blank=True)
    """The cursor: messages up to this time are observed."""
    observed_message_ids = models.JSONField(null=True, blank=True)
    """Messages after the cursor that an imported record names as observed.

    Our own observations are recorded in `MessageObservation`.
    """
    imported_sequence = models.BigIntegerField(default=0, db_default=0, editable=False)
    """The newest `Message.sequence` when the record was imported or cloned.

    A message without a `MessageObservation` counts as observed if its sequence is at most this
    number and its time is not after the cursor.
    """
    observed_timezone = models.TextField(blank=True, default="")
    last_buffered_at_tokens = models.BigIntegerField(default=0)
    """The pending tokens when the newest chunk was buffered; 0 after an activation."""
    last_buffered_at_time = InstantField(null=True, blank=True)
    """The time of the newest message in a chunk."""
    buffered_reflection = models.TextField(blank=True, default="")
    buffered_reflection_tokens = models.IntegerField(null=True, blank=True)
    buffered_reflection_input_tokens = models.IntegerField(null=True, blank=True)
    """The tokens of the observations that the buffered reflection replaces."""
    reflected_observation_line_count = models.IntegerField(null=True, blank=True)
    """How many lines of the log the buffered reflection replaces."""
    config = models.JSONField(default=dict, blank=True)
    metadata = models.JSONField(null=True, blank=True)
    pinned = models.JSONField(_("pinned observations"), default=list, blank=True, db_default=[])
    """Texts of observations that a reflection must keep."""
    unproductive_reflection_tokens = models.IntegerField(null=True, blank=True)
    """The tokens of the observations when the last reflection failed or did not shorten them."""
    # Leases with fencing tokens, see `db.leases`. One is for observing and buffering, the other one
    # for reflecting, so that both may happen at the same time.
    lease_token = models.UUIDField(null=True, blank=True, editable=False)
    lease_operation = models.CharField(
        max_length=16, choices=Operation, blank=True, default="", db_default="", editable=False
    )
    lease_expires_at = AwareDateTimeField(null=True, blank=True, editable=False)
    reflection_token = models.UUIDField(null=True, blank=True, editable=False)
    reflection_operation = models.CharField(
        max_length=16, choices=Operation, blank=True, default="", db_default="", editable=False
    )
    reflection_expires_at = AwareDateTimeField(null=True, blank=True, editable=False)
    agent_id = IdField(_("agent"), null=True, blank=True, editable=False)
    """The agent whose options apply to requested work."""
    due_at = InstantField(_("work is due"), null=True, blank=True, editable=False)
    """When work on the record is due. It is set until the work is finished, whoever does it."""
    requests = models.JSONField(default=dict, blank=True, db_default={}, editable=False)
    """What people asked a worker for: `observe` or `reflect`, with the name of the person."""
    attempts = models.PositiveSmallIntegerField(
        _("attempts"), default=0, db_default=0, editable=False
    )
    error = models.TextField(_("last error"), blank=True, default="", db_default="", editable=False)
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
            models.UniqueConstraint(
                fields=["thread"],
                condition=models.Q(thread__isnull=False, superseded_by__isnull=True),
                name="mastra_om_thread_live",
            ),
            models.UniqueConstraint(
                fields=["resource_id"],
                condition=models.Q(thread__isnull=True, superseded_by__isnull=True),
                name="mastra_om_resource_live",
            ),
            models.CheckConstraint(
                condition=models.Q(superseded_by__isnull=True)
                | models.Q(
                    ~models.Q(superseded_by=models.F("id")),
                    lease_token=None,
                    reflection_token=None,
                    due_at=None,
                ),
                name="mastra_om_superseded_is_idle",
            ),
            _lease_is_complete("lease", ["observing", "buffering"]),
            _lease_is_complete("reflection", ["reflecting", "buffering"]),
            models.CheckConstraint(
                condition=models.Q(JsonTypeIs("pinned", "array")), name="mastra_om_pinned_is_list"
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=models.Q(due_at__isnull=False),
                name="mastra_om_due",
            ),
            # The database checks this reference when a record is deleted.
            models.Index(
                fields=["superseded_by"],
                condition=models.Q(superseded_by__isnull=False),
                name="mastra_om_superseded_by",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id or self.resource_id} · {self.generation_count}"

    @property
    def is_live(self) -> bool:
        """Return True if this is the current generation."""
        return self.superseded_by_id is None

    @property
    def is_observing(self) -> bool:
        """Return True while a worker writes observations."""
        return self._has_lease(self.Operation.OBSERVING)

    @property
    def is_reflecting(self) -> bool:
        """Return True while a worker writes a reflection."""
        return self._has_reflection_lease(self.Operation.REFLECTING)

    @property
    def is_buffering_observation(self) -> bool:
        """Return True while a worker prepares a chunk."""
        return self._has_lease(self.Operation.BUFFERING)

    @property
    def is_buffering_reflection(self) -> bool:
        """Return True while a worker prepares a reflection."""
        return self._has_reflection_lease(self.Operation.BUFFERING)

    @property
    def buffered_chunks(self) -> list["ObservationChunk"]:
        """Return the chunks that wait for activation, oldest first."""
        buffered = [chunk for chunk in self.chunks.all() if chunk.activated_at is None]
        return sorted(buffered, key=lambda chunk: chunk.position)

    def _has_lease(self, operation: str) -> bool:
        return self.lease_operation == operation and _is_in_future(self.lease_expires_at)

    def _has_reflection_lease(self, operation: str) -> bool:
        return self.reflection_operation == operation and _is_in_future(self.reflection_expires_at)


def _is_in_future(moment: datetime | None) -> bool:
    return moment is not None and moment > times.now()
