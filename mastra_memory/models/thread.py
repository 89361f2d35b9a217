"""Conversations."""

from typing import Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import (
    GinIndex,
    IdField,
    InstantField,
    JsonTypeIs,
    TsVectorField,
    id_length_is_valid,
    new_id,
)


class ThreadQuerySet(models.QuerySet["Thread"]):
    """Filters for threads."""

    def of_resource(self, resource_id: str) -> Self:
        """Return the threads of a resource."""
        return self.filter(resource_id=resource_id)

    def clones_of(self, source_id: str) -> Self:
        """Return the direct clones of a thread."""
        return self.filter(clone_source_id=source_id)


class Thread(models.Model):
    """A conversation.

    A thread and its messages belong to a resource, usually a user of the host project.
    """

    class TitleSource(models.TextChoices):
        """Where the title comes from. A title that a person typed is never overwritten.

        `OBSERVED` is a title that a model proposed while it observed the thread.
        """

        NONE = "", _("none")
        MANUAL = "manual", _("manual")
        GENERATED = "generated", _("generated")
        OBSERVED = "observed", _("observed")

    class TitleState(models.TextChoices):
        """Progress of generating a title."""

        NONE = "", _("not requested")
        PENDING = "pending", _("pending")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    id = IdField(_("id"), primary_key=True, default=new_id)
    resource_id = IdField(_("resource"))
    title = models.TextField(_("title"), blank=True, default="")
    title_source = models.CharField(
        _("title source"), max_length=16, choices=TitleSource, blank=True, default=TitleSource.NONE
    )
    metadata = models.JSONField(_("metadata"), null=True, blank=True)
    """A JSON object or null.

    Working memory of the thread is stored in its own table; the API shows it as a key of this.
    """
    title_state = models.CharField(
        _("title generation"),
        max_length=8,
        choices=TitleState,
        blank=True,
        db_default=TitleState.NONE,
        editable=False,
    )
    title_request = models.JSONField(null=True, blank=True, editable=False)
    """The agent and the options of the request for a title."""
    title_attempts = models.PositiveSmallIntegerField(
        _("title attempts"), db_default=0, editable=False
    )
    title_due_at = InstantField(null=True, blank=True, editable=False)
    """When a pending title may be claimed. A worker that claims it sets this to the end of its
    lease."""
    title_error = models.TextField(blank=True, db_default="", editable=False)
    """Why the last attempt failed."""
    title_search = TsVectorField(null=True, editable=False)
    """The words of the title. Null until they are indexed; a trigger resets it with the title."""
    clone_source_id = IdField(_("cloned from"), null=True, blank=True, editable=False)
    """Not a foreign key: the id is kept when the source is deleted."""
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
            ("erase_resource", _("Can erase all data of a resource")),
            ("view_personal_data", _("Can view personal data unmasked")),
        ]
        constraints = [
            id_length_is_valid("mastra_thread_ids", "id", "resource_id"),
            models.CheckConstraint(
                condition=models.Q(metadata__isnull=True)
                | models.Q(JsonTypeIs("metadata", "object")),
                name="mastra_thread_metadata_is_object",
            ),
            # Target of the composite foreign keys of messages, working memory and observations.
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
            GinIndex(fields=["title_search"], name="mastra_thread_words"),
            models.Index(
                fields=["resource_id"],
                condition=models.Q(title_search__isnull=True),
                name="mastra_thread_wordless",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.id
