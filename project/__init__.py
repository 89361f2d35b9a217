"""The memory app as a service of its own: settings, access tokens, health, `manage.py serve`."""

from project.celery import app as celery_app

__all__ = ["celery_app"]
