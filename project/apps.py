"""The service as an installed app."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """The service that runs `mastra_memory`."""

    name = "project"
    label = "project"
    verbose_name = "Access"
    default_auto_field = "django.db.models.BigAutoField"
