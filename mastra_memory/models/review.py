"""Reviews of threads: status, assignee, tags, notes, and who is reading."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import (
    AwareDateTimeField,
    GinIndex,
    IdField,
    TsVectorField,
    UserIdField,
)
from mastra_memory.models.thread import Thread


class Review(models.Model):
    """The review of a thread.

    A thread without one has the defaults: new, unassigned, of normal priority.
    """

    class Status(models.TextChoices):
        """Stages of a review."""

        NEW = "new", _("new")
        IN_REVIEW = "in_review", _("in review")
        WAITING = "waiting", _("waiting")
        RESOLVED = "resolved", _("resolved")
        FLAGGED = "flagged", _("flagged")

    class Priority(models.IntegerChoices):
        """Urgency of a review."""

        LOW = 0, _("low")
        NORMAL = 1, _("normal")
        HIGH = 2, _("high")
        URGENT = 3, _("urgent")

    thread = models.OneToOneField(
        Thread,
        models.DO_NOTHING,
        primary_key=True,
        related_name="review",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        verbose_name=_("thread"),
    )
    status = models.CharField(_("status"), max_length=16, choices=Status, default=Status.NEW)
    priority = models.SmallIntegerField(_("priority"), choices=Priority, default=Priority.NORMAL)
    assignee_id = UserIdField(_("assignee"), null=True, blank=True)
    version = models.PositiveIntegerField(default=1, editable=False)
    """The number of changes. A form with an older version is refused."""
    changed_by_id = UserIdField(null=True, editable=False)
    created_at = AwareDateTimeField(_("created"), db_default=Now(), editable=False)
    updated_at = AwareDateTimeField(_("changed"), db_default=Now(), editable=False)
    resolved_at = AwareDateTimeField(_("resolved"), null=True, editable=False)

    class Meta:
        verbose_name = _("review")
        verbose_name_plural = _("reviews")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    status__in=["new", "in_review", "waiting", "resolved", "flagged"]
                ),
                name="mastra_review_status",
            ),
            models.CheckConstraint(
                condition=models.Q(priority__range=(0, 3)), name="mastra_review_priority"
            ),
        ]
        indexes = [
            models.Index(fields=["status", "thread"], name="mastra_review_status_idx"),
            models.Index(
                fields=["assignee_id", "status"],
                condition=models.Q(assignee_id__isnull=False),
                name="mastra_review_assignee_idx",
            ),
            models.Index(fields=["resolved_at"], name="mastra_review_resolved_idx"),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id} · {self.get_status_display()}"


class ReviewNote(models.Model):
    """A note by a reviewer about a thread or one of its messages."""

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        related_name="notes",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("thread"),
    )
    message_id = IdField(_("message"), null=True, blank=True)
    """The message that the note is about. Not a foreign key: the note is kept when the message is
    deleted."""
    author_id = UserIdField(_("author"), null=True, db_index=True)
    text = models.TextField(_("text"))
    search = TsVectorField(null=True, editable=False)
    """The words of the text. Null until they are indexed."""
    created_at = AwareDateTimeField(_("created"), db_default=Now())

    author_name: str = ""
    """The user name of the author. Not stored: `review.notes.list_notes` sets it."""

    class Meta:
        verbose_name = _("note")
        verbose_name_plural = _("notes")
        indexes = [
            models.Index(fields=["thread", "created_at"], name="mastra_note_thread"),
            GinIndex(fields=["search"], name="mastra_note_words"),
            models.Index(
                fields=["id"],
                condition=models.Q(search__isnull=True),
                name="mastra_note_wordless",
            ),
        ]

    def __str__(self) -> str:
        return self.text[:80]


class Tag(models.Model):
    """A label that reviewers give to threads."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(_("name"), max_length=64, unique=True)

    class Meta:
        verbose_name = _("tag")
        verbose_name_plural = _("tags")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ThreadTag(models.Model):
    """The assignment of a tag to a thread."""

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        related_name="thread_tags",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
    )
    tag = models.ForeignKey(Tag, models.CASCADE, related_name="thread_tags", db_index=False)

    class Meta:
        verbose_name = _("tag of a thread")
        verbose_name_plural = _("tags of threads")
        constraints = [
            models.UniqueConstraint(fields=["thread", "tag"], name="mastra_thread_tag_once")
        ]
        indexes = [models.Index(fields=["tag", "thread"], name="mastra_thread_tag_idx")]

    def __str__(self) -> str:
        return f"{self.thread_id} · {self.tag_id}"


class Visit(models.Model):
    """A user who opened a thread, and how far they have read it."""

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        related_name="visits",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
    )
    user_id = UserIdField(_("user"), db_index=True)
    seen_at = AwareDateTimeField(_("last seen"), db_default=Now())
    read_up_to = AwareDateTimeField(_("read up to"), null=True)
    """The time of the newest message that the user has seen."""

    class Meta:
        verbose_name = _("visit")
        verbose_name_plural = _("visits")
        constraints = [
            models.UniqueConstraint(fields=["thread", "user_id"], name="mastra_visit_once")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} · {self.thread_id}"
