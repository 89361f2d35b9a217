"""SQL statements that copy threads. They are SQL because no row passes through Python."""

from mastra_memory.db import sql

# `ON CONFLICT DO NOTHING` reports a taken id as "no row inserted", without an error that would end
# the transaction.
INSERT_CLONE = """INSERT INTO mastra_memory_thread
    (id, resource_id, title, title_source, clone_source_id)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"""


def build_copy_id(column: str) -> str:
    """Return SQL for the id of a copy: a UUID of version 8 (RFC 9562).

    It is made of the time and a hash of the clone's id and the original's. So it can be computed
    again for vectors and for the result, without a table of ids, and the ids of one clone are
    neighbours in the index. Parameters: the id of the clone and the first 15 characters.
    """
    hashed = f"md5(%s || '/' || {column})::uuid::text"
    return f"overlay(overlay({hashed} PLACING %s FROM 1 FOR 15) PLACING '8' FROM 20 FOR 1)"


COPY_ID = build_copy_id("m.id")


def copy_messages(source: object) -> str:
    """Return the INSERT ... SELECT that copies messages.

    New sequence numbers are drawn in the order of the conversation, so the copies keep it.
    """
    return f"""INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal,
        content, text, search, created_at, edited_at)
    SELECT {COPY_ID}, %s, %s, m.role, m.type, m.signal, m.content, m.text, m.search,
        m.created_at, m.edited_at
    FROM {source} ORDER BY m.created_at, m.sequence"""


def read_copies(source: object, *, with_messages: bool) -> str:
    """Return a SELECT of old and new ids, and if needed of what else a `StoredMessage` has."""
    created = sql.format_time("m.created_at")
    bodies = f", m.role, m.type, m.content::text, {created}, m.sequence, m.signal"
    return f"""SELECT m.id, {COPY_ID}{bodies if with_messages else ""}
    FROM {source} ORDER BY m.created_at, m.sequence"""


# Copies get the vectors of their originals, so no text is embedded again, and requests for those
# that are still missing.
COPY_VECTORS = f"""WITH requested AS (
    INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
    SELECT c.id, c.thread_id, c.resource_id, r.model
    FROM mastra_memory_embeddingrequest r
    JOIN mastra_memory_message c ON c.id = {build_copy_id("r.message_id")}
    WHERE r.thread_id = %s)
INSERT INTO mastra_memory_messageembedding (message_id, thread_id, resource_id, model,
    dimensions, passage, text_hash, embedding)
SELECT c.id, c.thread_id, c.resource_id, e.model, e.dimensions, e.passage, e.text_hash, e.embedding
FROM mastra_memory_messageembedding e
JOIN mastra_memory_message c ON c.id = {build_copy_id("e.message_id")}
WHERE e.thread_id = %s"""
