"""How Django loads this app."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class MastraMemoryConfig(AppConfig):
    """Agent memory: threads, messages, working memory, observations."""

    name = "mastra_memory"
    verbose_name = _("Agent memory")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks and the receivers of signals."""
        from mastra_memory import checks, setting_checks  # noqa: F401  (registers the checks)
        from mastra_memory.messages import fixtures  # noqa: F401
        from mastra_memory.review import reviewer_group, user_references

        post_migrate.connect(reviewer_group.create_group, sender=self)
        user_references.connect()
