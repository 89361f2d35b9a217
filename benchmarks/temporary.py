"""Create and stop the temporary database of a benchmark, and print its figures."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.servers import say


def create_tables() -> None:
    """Create the tables of the app in the database of the settings."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def stop_database(var_dir: Path) -> None:
    """Close the connection, and stop the embedded database in this folder."""
    from django.db import connection

    from project import embedded_postgres

    connection.close()
    embedded_postgres.release(var_dir)


def print_table(rows: Mapping[str, Mapping[str, float]]) -> None:
    """Print one line of figures for each row. The first row has all columns."""
    columns = list(next(iter(rows.values())))
    width = max(map(len, rows))
    say(" " * width + "".join(f"{column:>11}" for column in columns))
    for name, row in rows.items():
        say(f"{name:<{width}}" + "".join(f"{row[column]:>11.3f}" for column in columns))
    say()
