"""Results of the Observer: buffered chunks, and those that are part of the observations."""

from typing import Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import IdField, InstantField, id_length_is_valid
from mastra_memory.models.observational_record import ObservationalRecord


class ObservationChunkQuerySet(models.QuerySet["ObservationChunk"]):
    """Filters for chunks."""

    def buffered(self) -> Self:
        """Return the chunks that wait for activation."""
        return self.filter(activated_at=None)

    def activated(self) -> Self:
        """Return the chunks whose text is part of the observations."""
        return self.exclude(activated_at=None)


class ObservationChunk(models.Model):
    """What the Observer wrote about some messages in one call.

    A buffered chunk was written in advance. It is not used until it is activated, and it moves to
    each new generation. An activated chunk stays with the generation to whose observations its text
    was added. It tells which messages were observed; see `MessageObservation`.
    """

    class Origin(models.TextChoices):
        """Where the chunk comes from."""

        BUFFERING = "buffering", _("buffering")
        OBSERVATION = "observation", _("observation")
        IMPORT = "import", _("import")

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
    origin = models.CharField(
        _("origin"), max_length=16, choices=Origin, default=Origin.BUFFERING, db_default="buffering"
    )
    thread_id = IdField(_("thread"), null=True, blank=True)
    """The thread of the messages. Null for an import in resource scope that does not name it."""
    cycle_id = models.TextField(_("cycle"))
    """Identifies the call of the Observer, so that its result is stored only once."""
    group_id = models.TextField(_("group"), blank=True, default="", db_default="")
    """The id of the observation group in the text; empty without retrieval."""
    range = models.TextField(_("range"), blank=True, default="", db_default="")
    """The ids of the first and the last message, `first:last`."""
    observations = models.TextField(_("observations"))
    token_count = models.IntegerField(_("tokens"))
    message_ids = models.JSONField(_("messages"), default=list)
    message_tokens = models.IntegerField(_("message tokens"))
    last_observed_at = InstantField(_("observed up to"))
    hints = models.JSONField(_("hints"), default=dict, blank=True)
    """`currentTask`, `suggestedContinuation`, `threadTitle`, `extractedValues` and
    `extractionFailures`, if the Observer returned them."""
    activated_at = InstantField(_("activated"), null=True, blank=True)
    """When the text became part of the observations; null while the chunk is buffered."""
    created_at = InstantField(_("created"), db_default=Now())

    objects = ObservationChunkQuerySet.as_manager()

    class Meta:
        verbose_name = _("observation chunk")
        verbose_name_plural = _("observation chunks")
        constraints = [
            id_length_is_valid("mastra_chunk_id", "id"),
            models.UniqueConstraint(fields=["record", "position"], name="mastra_chunk_position"),
            models.UniqueConstraint(fields=["record", "cycle_id"], name="mastra_chunk_cycle"),
        ]
        indexes = [
            models.Index(
                fields=["record", "position"],
                condition=models.Q(activated_at__isnull=True),
                name="mastra_chunk_buffered",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
