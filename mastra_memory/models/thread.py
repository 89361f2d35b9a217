"""One conversation of one resource."""

from typing import Self

from django.contrib.postgres.indexes import GinIndex
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


class ThreadQuerySet(models.QuerySet["Thread"]):
    """Threads, read aloud."""

    def of_resource(self, resource_id: str) -> Self:
        return self.filter(resource_id=resource_id)

    def clones_of(self, source_id: str) -> Self:
        return self.filter(clone_source_id=source_id)


class Thread(models.Model):
    """A conversation. Its resource owns it and everything that hangs on it."""

    class TitleSource(models.TextChoices):
        """Who gave the title; one that a person typed is never overwritten."""

        NONE = "", _("none")
        MANUAL = "manual", _("a person")
        GENERATED = "generated", _("generated")
        OBSERVED = "observed", _("observed")

    class TitleState(models.TextChoices):
        """Whether a title is to be generated."""

        NONE = "", _("not asked for")
        PENDING = "pending", _("pending")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    id = IdField(_("id"), primary_key=True, default=new_id)
    resource_id = IdField(_("resource"))
    title = models.TextField(_("title"), blank=True, default="")
    title_source = models.CharField(
        _("title from"), max_length=16, choices=TitleSource, blank=True, default=TitleSource.NONE
    )
    metadata = models.JSONField(_("metadata"), null=True, blank=True)
    """An object or nothing. Thread-scoped working memory is kept apart and shown in it."""
    title_state = models.CharField(
        _("title generation"),
        max_length=8,
        choices=TitleState,
        blank=True,
        db_default=TitleState.NONE,
        editable=False,
    )
    title_request = models.JSONField(null=True, blank=True, editable=False)
    """By which agent and with which options a title was asked for."""
    title_attempts = models.PositiveSmallIntegerField(
        _("attempts at a title"), db_default=0, editable=False
    )
    title_due_at = InstantField(null=True, blank=True, editable=False)
    """Pending work is free to be taken from then on; taking it moves this on."""
    title_error = models.TextField(blank=True, db_default="", editable=False)
    """Why the last attempt failed."""
    clone_source_id = IdField(_("cloned from"), null=True, blank=True, editable=False)
    """No foreign key: the lineage outlives the source."""
    created_at = InstantField(_("created"), db_default=Now(), editable=False)
    updated_at = InstantField(_("last activity"), db_default=Now(), editable=False)

    objects = ThreadQuerySet.as_manager()

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        permissions = [
            ("access_all_resources", _("Can use the API for every resource")),
            ("review_thread", _("Can review threads: status, notes, tags")),
            ("edit_transcript", _("Can edit messages, titles and metadata")),
            ("export_thread", _("Can export threads")),
            ("erase_resource", _("Can erase everything of a resource")),
            ("view_personal_data", _("Can see what is masked for others")),
        ]
        constraints = [
            id_length_is_valid("mastra_thread_ids", "id", "resource_id"),
            models.CheckConstraint(
                condition=models.Q(metadata__isnull=True)
                | models.Q(JsonTypeIs("metadata", "object")),
                name="mastra_thread_metadata_is_object",
            ),
            # The composite foreign keys of messages, working memory and observations point here.
            models.UniqueConstraint(fields=["id", "resource_id"], name="mastra_thread_owner"),
        ]
        indexes = [
            models.Index(
                fields=["resource_id", "created_at", "id"], name="mastra_thread_res_created"
            ),
            models.Index(
                fields=["resource_id", "updated_at", "id"], name="mastra_thread_res_updated"
            ),
            models.Index(fields=["created_at", "id"], name="mastra_thread_created"),
            models.Index(fields=["updated_at", "id"], name="mastra_thread_updated"),
            models.Index(
                fields=["clone_source_id"],
                condition=models.Q(clone_source_id__isnull=False),
                name="mastra_thread_clone_source",
            ),
            models.Index(
                fields=["title_due_at"],
                condition=models.Q(title_state="pending"),
                name="mastra_thread_title_due",
            ),
            GinIndex(fields=["metadata"], opclasses=["jsonb_path_ops"], name="mastra_thread_meta"),
        ]

    def __str__(self) -> str:
        return self.title or self.id
