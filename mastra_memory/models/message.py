"""One row of a conversation."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import (
    IdField,
    InstantField,
    JsonTypeIs,
    id_length_is_valid,
    new_id,
)
from mastra_memory.models.thread import Thread


class NextSequence(models.Func):
    """The next number of the sequence that orders messages of one moment."""

    template = "nextval('mastra_memory_message_sequence')"
    output_field = models.BigIntegerField()


class Message(models.Model):
    """A message. The database keeps its resource equal to its thread's."""

    class Role(models.TextChoices):
        """Who speaks. System messages are instructions and never stored."""

        USER = "user", _("user")
        ASSISTANT = "assistant", _("assistant")
        TOOL = "tool", _("tool")
        SIGNAL = "signal", _("signal")

    id = IdField(_("id"), primary_key=True, default=new_id)
    sequence = models.BigIntegerField(_("sequence"), db_default=NextSequence(), editable=False)
    """Breaks every tie of `created_at`, in the order of saving."""
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        related_name="messages",
        db_constraint=False,  # the migration adds (thread, resource) with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("thread"),
    )
    resource_id = IdField(_("resource"), editable=False)
    role = models.CharField(_("role"), max_length=16, choices=Role)
    type = models.TextField(_("type"), default="v2")
    signal = models.CharField(_("signal"), max_length=32, blank=True, default="", editable=False)
    """The kind of signal or reminder, by which a list may hide it; empty for most."""
    content = models.JSONField(_("content"))
    text = models.TextField(_("text"), blank=True, default="")
    """What a person would read of the content; written with it."""
    search = SearchVectorField(null=True, editable=False)
    """The words of `text`; null until they are written."""
    created_at = InstantField(_("created"), db_default=Now())
    edited_at = InstantField(_("edited"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = [
            id_length_is_valid("mastra_message_id", "id"),
            models.CheckConstraint(
                condition=models.Q(role__in=["user", "assistant", "tool", "signal"]),
                name="mastra_message_role",
            ),
            models.CheckConstraint(
                condition=models.Q(JsonTypeIs("content", "object")),
                name="mastra_message_content_is_object",
            ),
            models.UniqueConstraint(
                fields=["thread", "created_at", "sequence"], name="mastra_message_order"
            ),
        ]
        indexes = [
            models.Index(
                fields=["resource_id", "created_at", "sequence"], name="mastra_message_resource"
            ),
            GinIndex(fields=["search"], name="mastra_message_search"),
            models.Index(
                fields=["resource_id"],
                condition=models.Q(search__isnull=True),
                name="mastra_message_wordless",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_role_display()}: {self.text[:80]}"
