"""Vectors of messages, and the queue of messages that still need them."""

from typing import Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from mastra_memory.models.fields import IdField, InstantField
from mastra_memory.models.message import Message


class MessageEmbedding(models.Model):
    """The vector of one passage of a message.

    Thread and resource are stored here too, so that a search reads only one table. Triggers keep
    them equal to the message's, and delete the vectors when the text of the message changes.
    """

    pk = models.CompositePrimaryKey("message_id", "model", "dimensions", "passage")
    message = models.ForeignKey(
        Message,
        models.DO_NOTHING,
        related_name="embeddings",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
    )
    model = IdField(_("model"))
    """`provider/model` of the embedder. Vectors of different models are never compared."""
    dimensions = models.PositiveSmallIntegerField(_("dimensions"))
    """The length of the vector."""
    passage = models.PositiveSmallIntegerField(_("passage"))
    """The number of the passage in the message, starting with 0."""
    thread_id = IdField(_("thread"))
    resource_id = IdField(_("resource"))
    text_hash = models.BinaryField(_("hash of the text"), max_length=32)
    """SHA-256 of the whole text of the message, not only of this passage."""
    embedding = VectorField(_("vector"))

    class Meta:
        verbose_name = _("message embedding")
        verbose_name_plural = _("message embeddings")
        indexes = [
            models.Index(
                fields=["model", "dimensions", "resource_id"], name="mastra_embedding_resource"
            ),
            models.Index(
                fields=["model", "dimensions", "thread_id"], name="mastra_embedding_thread"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} · {self.model} · {self.passage}"


class EmbeddingRequestQuerySet(models.QuerySet["EmbeddingRequest"]):
    """Filters for embedding requests."""

    def pending(self) -> Self:
        """Return requests that workers still try."""
        return self.filter(failed_at=None)

    def failed(self) -> Self:
        """Return requests that used up their attempts."""
        return self.exclude(failed_at=None)


class EmbeddingRequest(models.Model):
    """A message that needs vectors of one model. Deleted once they are stored."""

    id = models.BigAutoField(primary_key=True)
    message = models.ForeignKey(
        Message,
        models.DO_NOTHING,
        related_name="embedding_requests",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("message"),
    )
    thread_id = IdField(_("thread"))
    resource_id = IdField(_("resource"))
    model = IdField(_("model"))
    created_at = InstantField(_("requested"), db_default=Now())
    due_at = InstantField(_("next attempt"), db_default=Now())
    """When it may be claimed. A worker that claims it sets this to the end of its lease."""
    claim = models.UUIDField(_("claimed by"), null=True, editable=False)
    """A random token of the worker that holds the claim."""
    attempts = models.PositiveSmallIntegerField(_("attempts"), db_default=0)
    error = models.TextField(_("last error"), blank=True, db_default="")
    failed_at = InstantField(_("failed"), null=True, blank=True)
    """When the last of `EMBEDDER_ATTEMPTS` failed. `mastra_embed --retry` tries again."""

    objects = EmbeddingRequestQuerySet.as_manager()

    class Meta:
        verbose_name = _("embedding request")
        verbose_name_plural = _("embedding requests")
        constraints = [
            models.UniqueConstraint(
                fields=["message", "model"], name="mastra_embedding_request_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at", "id"],
                condition=models.Q(failed_at=None),
                name="mastra_embedding_request_due",
            ),
            models.Index(fields=["resource_id"], name="mastra_embedding_request_res"),
            models.Index(fields=["thread_id"], name="mastra_embedding_request_thr"),
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.message_id}"
