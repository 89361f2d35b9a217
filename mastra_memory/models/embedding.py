"""Vectors of messages, and which are still to be made."""

from typing import Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from mastra_memory.models.fields import IdField, InstantField
from mastra_memory.models.message import Message


class MessageEmbedding(models.Model):
    """The vector of one passage of a message.

    Thread and resource stand here too, so that a search reads one table; the database keeps them
    equal to the message's, and drops the vectors when the message's text changes or goes.
    """

    pk = models.CompositePrimaryKey("message_id", "model", "dimensions", "passage")
    message = models.ForeignKey(
        Message,
        models.DO_NOTHING,
        related_name="embeddings",
        db_constraint=False,  # the migration adds it with ON DELETE CASCADE
        db_index=False,
    )
    model = IdField(_("model"))
    """The embedder's name. Vectors of different models are never compared."""
    dimensions = models.PositiveSmallIntegerField(_("dimensions"))
    passage = models.PositiveSmallIntegerField(_("passage"))
    thread_id = IdField(_("thread"))
    resource_id = IdField(_("resource"))
    text_hash = models.BinaryField(_("hash of the text"), max_length=32)
    """SHA-256 of the message's whole text, of which this is a passage."""
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
    """Requests, read aloud."""

    def pending(self) -> Self:
        return self.filter(failed_at=None)

    def failed(self) -> Self:
        return self.exclude(failed_at=None)


class EmbeddingRequest(models.Model):
    """A message whose vectors are to be made. The row goes when they are there."""

    id = models.BigAutoField(primary_key=True)
    message = models.ForeignKey(
        Message,
        models.DO_NOTHING,
        related_name="embedding_requests",
        db_constraint=False,  # the migration adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("message"),
    )
    thread_id = IdField(_("thread"))
    resource_id = IdField(_("resource"))
    model = IdField(_("model"))
    created_at = InstantField(_("asked for"), db_default=Now())
    due_at = InstantField(_("next attempt"), db_default=Now())
    """Not before. A worker that takes the request moves it ahead, so that no other takes it."""
    claim = models.UUIDField(_("taken by"), null=True, editable=False)
    attempts = models.PositiveSmallIntegerField(_("attempts"), db_default=0)
    error = models.TextField(_("last error"), blank=True, db_default="")
    failed_at = InstantField(_("given up"), null=True, blank=True)
    """After so many attempts; it stays like this until it is told to try again."""

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
