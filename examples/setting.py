"""What every example starts with: Django, and a database that is ready."""

import os
import sys

import django
from django.core.management import call_command


def prepare() -> None:
    """Set Django up and create the tables; call it before importing anything of the memory."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    call_command("migrate", verbosity=0)


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(text + "\n")
