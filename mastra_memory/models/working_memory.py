"""Working memory of threads and resources, and its revisions."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import IdField, InstantField, UserIdField, id_length_is_valid
from mastra_memory.models.thread import Thread


class Scope(models.TextChoices):
    """What working memory or an observation belongs to."""

    THREAD = "thread", _("thread")
    RESOURCE = "resource", _("resource")


def scope_matches_thread(name: str) -> models.CheckConstraint:
    """Return a constraint that the thread is set in thread scope, and only there."""
    return models.CheckConstraint(
        condition=models.Q(scope=Scope.THREAD, thread__isnull=False)
        | models.Q(scope=Scope.RESOURCE, thread__isnull=True),
        name=name,
    )


class WorkingMemory(models.Model):
    """The text that agents keep for a thread or a resource; at most one for each."""

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(_("scope"), max_length=8, choices=Scope)
    thread = models.ForeignKey(
        Thread,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="working_memories",
        db_constraint=False,  # migration 0002 adds (thread, resource) with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("thread"),
    )
    resource_id = IdField(_("resource"))
    content = models.TextField(_("content"), blank=True, default="")
    """Markdown, or JSON text if the agent has a schema; may be empty."""
    version = models.PositiveIntegerField(_("version"), default=1, editable=False)
    """Counts the changes: the number of the newest revision."""
    created_at = InstantField(_("created"), db_default=Now(), editable=False)
    updated_at = InstantField(_("updated"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("working memory")
        verbose_name_plural = _("working memories")
        constraints = [
            scope_matches_thread("mastra_wm_scope"),
            id_length_is_valid("mastra_wm_resource_id", "resource_id"),
            models.UniqueConstraint(
                fields=["thread"], condition=models.Q(thread__isnull=False), name="mastra_wm_thread"
            ),
            models.UniqueConstraint(
                fields=["resource_id"],
                condition=models.Q(thread__isnull=True),
                name="mastra_wm_resource",
            ),
        ]

    def __str__(self) -> str:
        return str(self.thread_id or self.resource_id)


class WorkingMemoryRevision(models.Model):
    """The content of a working memory between two changes."""

    id = models.BigAutoField(primary_key=True)
    working_memory = models.ForeignKey(
        WorkingMemory,
        models.DO_NOTHING,
        related_name="revisions",
        db_constraint=False,  # migration 0002 adds it with ON DELETE CASCADE
        db_index=False,
        verbose_name=_("working memory"),
    )
    version = models.PositiveIntegerField(_("version"))
    content = models.TextField(_("content"), blank=True)
    source = models.CharField(_("source"), max_length=32)
    """Origin of the change: `api`, `agent`, `clone`, `import`, `admin` or `python`."""
    author_id = UserIdField(_("author"), null=True, blank=True, db_index=True)
    """The user who made the change, if it was a user."""
    created_at = InstantField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("working memory revision")
        verbose_name_plural = _("working memory revisions")
        constraints = [
            models.UniqueConstraint(
                fields=["working_memory", "version"], name="mastra_wm_revision_version"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.working_memory_id} · {self.version}"
