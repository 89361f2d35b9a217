"""The history of changes that people made to threads."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import AwareDateTimeField, IdField, UserIdField
from mastra_memory.models.thread import Thread


class ThreadChange(models.Model):
    """A change to a thread, with the values before and after it."""

    class Kind(models.TextChoices):
        """Types of changes."""

        TITLE = "title", _("title")
        METADATA = "metadata", _("metadata")
        MESSAGE = "message", _("message")
        MESSAGES_DELETED = "deleted", _("messages deleted")
        WORKING_MEMORY = "memory", _("working memory")
        OBSERVATIONS = "observations", _("observations")
        TRANSFER = "transfer", _("transfer")
        CLONE = "clone", _("clone")
        REVIEW = "review", _("review")
        NOTE = "note", _("note")
        SCORE = "score", _("score")
        UNDO = "undo", _("undo")

    UNDOABLE = (Kind.TITLE, Kind.METADATA, Kind.MESSAGE, Kind.MESSAGES_DELETED)

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        related_name="changes",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("thread"),
    )
    kind = models.CharField(_("kind"), max_length=16, choices=Kind)
    message_id = IdField(_("message"), null=True, blank=True)
    author_id = UserIdField(_("author"), null=True, db_index=True)
    before = models.JSONField(_("before"), null=True)
    after = models.JSONField(_("after"), null=True)
    undone_at = AwareDateTimeField(_("undone"), null=True)
    created_at = AwareDateTimeField(_("when"), db_default=Now())

    class Meta:
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        indexes = [
            models.Index(fields=["thread", "id"], name="mastra_change_thread"),
            models.Index(
                fields=["message_id"],
                condition=models.Q(message_id__isnull=False),
                name="mastra_change_message",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} · {self.thread_id}"
