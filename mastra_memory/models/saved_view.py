"""Named filters of the thread list."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from mastra_memory.models.fields import AwareDateTimeField, UserIdField


class SavedView(models.Model):
    """A saved filter of the thread list, for its owner or for all reviewers."""

    id = models.BigAutoField(primary_key=True)
    owner_id = UserIdField(_("owner"))
    name = models.CharField(_("name"), max_length=100)
    query = models.TextField(_("filters"), blank=True)
    """The query string of the list's URL, without the question mark."""
    shared = models.BooleanField(_("shared"), default=False)
    created_at = AwareDateTimeField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["owner_id", "name"], name="mastra_saved_view_name")
        ]

    def __str__(self) -> str:
        return self.name


class DefaultView(models.Model):
    """The saved view with which the list opens for a user."""

    user_id = UserIdField(primary_key=True)
    view = models.ForeignKey(SavedView, models.CASCADE, related_name="+")

    class Meta:
        verbose_name = _("default view")
        verbose_name_plural = _("default views")

    def __str__(self) -> str:
        return str(self.view_id)
