"""An export that is made in the background."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class ExportJob(models.Model):
    """What is to be exported, for whom, and how far it is."""

    class Format(models.TextChoices):
        """What the file holds."""

        JSONL = "jsonl", _("JSONL (everything, can be imported again)")
        MARKDOWN = "markdown", _("Markdown (to read)")
        CSV = "csv", _("CSV (for a spreadsheet)")

    class State(models.TextChoices):
        """How far it is."""

        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("owner")
    )
    format = models.CharField(_("format"), max_length=16, choices=Format)
    thread_ids = models.JSONField(_("threads"), default=list)
    """Settled when the export is asked for, by someone who may see these threads."""
    masked = models.BooleanField(_("masked"), default=True)
    """Whether personal data is masked, as the owner sees it."""
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.WAITING)
    done = models.PositiveIntegerField(_("threads done"), default=0)
    error = models.TextField(_("what went wrong"), blank=True)
    content = models.BinaryField(null=True)
    """The file, gzipped; kept in the database, so that it needs no shared disk and no cleaning."""
    created_at = models.DateTimeField(_("created"), db_default=Now())
    finished_at = models.DateTimeField(_("finished"), null=True)

    class Meta:
        verbose_name = _("export")
        verbose_name_plural = _("exports")
        indexes = [models.Index(fields=["owner", "-created_at"], name="mastra_export_owner")]

    def __str__(self) -> str:
        return f"{self.get_format_display()} · {len(self.thread_ids)}"
