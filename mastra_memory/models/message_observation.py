"""Tracks which messages are observed, buffered or pending."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import IdField
from mastra_memory.models.message import Message
from mastra_memory.models.observation_chunk import ObservationChunk
from mastra_memory.models.working_memory import Scope


class MessageObservation(models.Model):
    """How far observation of a message has come in one scope.

    Without a chunk the message is pending. With a buffered chunk it is buffered, and still part of
    the history. With an activated chunk it is observed. The primary key makes sure that a message
    is observed only once in each scope.

    A message without such a row is observed if it is not later than the cursor of the record;
    imported and cloned messages have no rows. Triggers keep thread and resource equal to those of
    the message, and make a moved message pending again.
    """

    pk = models.CompositePrimaryKey("message_id", "scope")
    message = models.ForeignKey(
        Message,
        models.DO_NOTHING,
        related_name="observations",
        db_constraint=False,  # migration 0003 adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("message"),
    )
    scope = models.CharField(_("scope"), max_length=8, choices=Scope)
    thread_id = IdField(_("thread"))
    resource_id = IdField(_("resource"))
    token_count = models.IntegerField(_("tokens"), null=True, blank=True)
    """The tokens of the message. Null until they are counted, and after a change of the content."""
    chunk = models.ForeignKey(
        ObservationChunk,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="message_observations",
        db_constraint=False,  # migration 0003 adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("chunk"),
    )

    class Meta:
        verbose_name = _("message observation")
        verbose_name_plural = _("message observations")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(scope__in=Scope.values), name="mastra_tracking_scope"
            ),
        ]
        indexes = [
            # The token counts are in the indexes, so that counting pending messages reads no table.
            models.Index(
                fields=["thread_id", "scope"],
                include=["token_count"],
                condition=models.Q(chunk__isnull=True),
                name="mastra_tracking_thread",
            ),
            models.Index(
                fields=["resource_id", "scope", "thread_id"],
                include=["token_count"],
                condition=models.Q(chunk__isnull=True),
                name="mastra_tracking_resource",
            ),
            models.Index(
                fields=["chunk"],
                include=["token_count"],
                condition=models.Q(chunk__isnull=False),
                name="mastra_tracking_chunk",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} · {self.scope}"
