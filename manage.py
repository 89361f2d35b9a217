#!/usr/bin/env python
"""Django's command line for the memory service."""

import os
import sys


def main() -> None:
    """Run a command; faults of the embedded database are one sentence, not a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.management import execute_from_command_line

    from project.embedded import EmbeddedDatabaseError

    try:
        execute_from_command_line(sys.argv)
    except EmbeddedDatabaseError as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
