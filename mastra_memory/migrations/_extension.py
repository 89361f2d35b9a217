"""Create the extension pgvector, or explain who has to do it."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

MISSING_EXTENSION = """The PostgreSQL extension "vector" (pgvector 0.8 or newer) is required and could \
not be created: {reason}

Only a database superuser may create it. Ask a superuser to run once, in this database:

    CREATE EXTENSION vector;

and run `migrate` again. If the extension is not available on the server, install it first: the package \
is called postgresql-<version>-pgvector on Debian and Ubuntu, pgvector_<version> on Red Hat; \
hosted databases list it among their extensions."""


def create_extension(apps: Any, schema_editor: Any) -> None:
    """Create the extension `vector` unless it exists.

    Raises:
        ImproperlyConfigured: The database user may not create it. The message says what to do.
    """
    from django.db import DatabaseError

    connection = schema_editor.connection
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        if cursor.fetchone():
            return
        try:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except DatabaseError as error:
            reason = str(error).splitlines()[0]
            raise ImproperlyConfigured(MISSING_EXTENSION.format(reason=reason)) from error
