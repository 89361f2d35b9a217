"""SQL of embeddings: the extension, and what keeps vectors true to their messages."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

MISSING = """The PostgreSQL extension "vector" (pgvector 0.8 or newer) is needed and could not be \
created: {reason}

Only a database superuser may create it. Ask one to run, once, in this database:

    CREATE EXTENSION vector;

and run `migrate` again. If PostgreSQL does not know the extension, install it first: the package \
is called postgresql-<version>-pgvector on Debian and Ubuntu, pgvector_<version> on Red Hat; \
hosted databases list it among their extensions."""


def create_extension(apps: Any, schema_editor: Any) -> None:
    """Create the extension unless it is there; say what to do where that is not allowed."""
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
            raise ImproperlyConfigured(MISSING.format(reason=reason)) from error


# A text that changes takes its vectors with it and asks for new ones, in the same transaction: a
# worker that comes late with vectors of the old text finds its claim gone.
CREATE = r"""
ALTER TABLE mastra_memory_messageembedding ADD CONSTRAINT mastra_embedding_message_fk
    FOREIGN KEY (message_id) REFERENCES mastra_memory_message (id) ON DELETE CASCADE;
ALTER TABLE mastra_memory_embeddingrequest ADD CONSTRAINT mastra_embedding_request_fk
    FOREIGN KEY (message_id) REFERENCES mastra_memory_message (id) ON DELETE CASCADE;

CREATE FUNCTION mastra_memory_text_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM mastra_memory_messageembedding WHERE message_id = NEW.id RETURNING model)
    INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
    SELECT DISTINCT NEW.id, NEW.thread_id, NEW.resource_id, model FROM gone
    ON CONFLICT (message_id, model) DO NOTHING;
    UPDATE mastra_memory_embeddingrequest SET claim = NULL, attempts = 0, error = '',
        due_at = now(), failed_at = NULL
    WHERE message_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER mastra_memory_text_changed AFTER UPDATE OF text ON mastra_memory_message
    FOR EACH ROW WHEN (OLD.text IS DISTINCT FROM NEW.text)
    EXECUTE FUNCTION mastra_memory_text_changed();

CREATE FUNCTION mastra_memory_message_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mastra_memory_messageembedding SET thread_id = NEW.thread_id,
        resource_id = NEW.resource_id WHERE message_id = NEW.id;
    UPDATE mastra_memory_embeddingrequest SET thread_id = NEW.thread_id,
        resource_id = NEW.resource_id WHERE message_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER mastra_memory_message_moved
    AFTER UPDATE OF thread_id, resource_id ON mastra_memory_message
    FOR EACH ROW WHEN ((OLD.thread_id, OLD.resource_id) IS DISTINCT FROM
        (NEW.thread_id, NEW.resource_id))
    EXECUTE FUNCTION mastra_memory_message_moved();
"""
DROP = """
DROP TRIGGER mastra_memory_message_moved ON mastra_memory_message;
DROP FUNCTION mastra_memory_message_moved();
DROP TRIGGER mastra_memory_text_changed ON mastra_memory_message;
DROP FUNCTION mastra_memory_text_changed();
ALTER TABLE mastra_memory_embeddingrequest DROP CONSTRAINT mastra_embedding_request_fk;
ALTER TABLE mastra_memory_messageembedding DROP CONSTRAINT mastra_embedding_message_fk;
"""
