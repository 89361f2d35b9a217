#!/usr/bin/env python
"""Django's command line for the memory service."""

import os
import sys


def main() -> None:
    """Run a command. Faults of the set-up are one sentence; `--traceback` shows where from."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from project.embedded_postgres import EmbeddedDatabaseError

    try:
        execute_from_command_line(sys.argv)
    except (EmbeddedDatabaseError, ImproperlyConfigured) as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
