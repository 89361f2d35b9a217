"""Messages of a conversation."""

from django.db import models
from django.db.models.functions import Cast, Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import (
    GinIndex,
    IdField,
    InstantField,
    JsonTypeIs,
    OctetLength,
    TsVectorField,
    id_length_is_valid,
    new_id,
)
from mastra_memory.models.thread import Thread


class NextSequence(models.Func):
    """The next value of the sequence behind `Message.sequence`."""

    template = "nextval('mastra_memory_message_sequence')"
    output_field = models.BigIntegerField()


class LastSequence(models.Func):
    """The newest value of the sequence behind `Message.sequence`."""

    template = "(SELECT last_value FROM mastra_memory_message_sequence)"
    output_field = models.BigIntegerField()


class Message(models.Model):
    """A message of a thread.

    A foreign key on (thread, resource) keeps the resource equal to that of the thread.
    """

    class Role(models.TextChoices):
        """The author of a message. System messages are instructions and never stored."""

        USER = "user", _("user")
        ASSISTANT = "assistant", _("assistant")
        TOOL = "tool", _("tool")
        SIGNAL = "signal", _("signal")

    id = IdField(_("id"), primary_key=True, default=new_id)
    sequence = models.BigIntegerField(_("sequence"), db_default=NextSequence(), editable=False)
    """Orders messages with equal `created_at`: a number from a database sequence.

    Messages of one batch often have the same millisecond. A replaced message keeps its number, so
    that it keeps its position in the conversation.
    """
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        related_name="messages",
        db_constraint=False,  # migration 0002 adds (thread, resource) with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("thread"),
    )
    resource_id = IdField(_("resource"), editable=False)
    role = models.CharField(_("role"), max_length=16, choices=Role)
    type = models.TextField(_("type"), default="v2")
    signal = models.CharField(_("signal"), max_length=32, blank=True, default="", editable=False)
    """The signal type, by which lists hide reminders; empty for ordinary messages.

    See `content.signal_types`.
    """
    content = models.JSONField(_("content"))
    """Mastra's format 2: an object with a list of `parts`."""
    content_bytes = models.GeneratedField(
        expression=OctetLength(Cast("content", models.TextField())),
        output_field=models.IntegerField(),
        db_persist=True,
    )
    """The length of the content as JSON text, in bytes.

    It is stored because a page of messages ends at a number of bytes: finding that end would
    otherwise decompress and format messages that are not returned.
    """
    text = models.TextField(_("text"), blank=True, default="")
    """The plain text of the content, written together with it; see `message_text.get_text`."""
    search = TsVectorField(null=True, editable=False)
    """The words of `text` and of the fields, see `search.fields`. Null after the save of a large
    batch, until a worker has written them."""
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
