"""Exports that a worker writes in the background."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import AwareDateTimeField, UserIdField


class ExportJob(models.Model):
    """An export that a reviewer requested, its progress and the finished file."""

    class Format(models.TextChoices):
        """File formats."""

        JSONL = "jsonl", _("JSONL (everything, can be imported again)")
        MARKDOWN = "markdown", _("Markdown (to read)")
        CSV = "csv", _("CSV (for a spreadsheet)")

    class State(models.TextChoices):
        """Progress of the export."""

        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    id = models.BigAutoField(primary_key=True)
    owner_id = UserIdField(_("owner"))
    format = models.CharField(_("format"), max_length=16, choices=Format)
    thread_ids = models.JSONField(_("threads"), default=list)
    """Ids of the threads. The owner may see all of them; this was checked on creation."""
    masked = models.BooleanField(_("masked"), default=True)
    """Whether personal data is masked, like in the pages that the owner sees."""
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.WAITING)
    done = models.PositiveIntegerField(_("threads done"), default=0)
    error = models.TextField(_("error"), blank=True)
    content = models.BinaryField(null=True)
    """The gzipped file. It is stored in the database, because web and worker processes may not
    share a disk."""
    created_at = AwareDateTimeField(_("created"), db_default=Now())
    finished_at = AwareDateTimeField(_("finished"), null=True)

    class Meta:
        verbose_name = _("export")
        verbose_name_plural = _("exports")
        indexes = [models.Index(fields=["owner_id", "-created_at"], name="mastra_export_owner")]

    def __str__(self) -> str:
        return f"{self.get_format_display()} · {len(self.thread_ids)}"
