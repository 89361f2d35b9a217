"""Set up Django and the database for an example."""

import os
import sys

import django
from django.core.management import call_command


def prepare() -> None:
    """Set up Django and create the tables. Call this before you import the memory."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    call_command("migrate", verbosity=0)


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(text + "\n")
