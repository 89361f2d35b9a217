"""SQL statements that copy threads and generate titles.

Copies use SQL, so that Python does not have to read the rows. Titles use SQL, because one atomic
statement must check, claim and return a row, with the clock of the database.
"""

from mastra_memory.db import sql
from mastra_memory.messages import MESSAGE_COLUMNS
from mastra_memory.search.tsvector import TITLE_WORDS

# `ON CONFLICT DO NOTHING` reports a taken id as "no row inserted", without an error that would end
# the transaction.
INSERT_CLONE = f"""INSERT INTO mastra_memory_thread
    (id, resource_id, title, title_search, title_source, clone_source_id)
VALUES (%s, %s, %s, {TITLE_WORDS}, %s, %s) ON CONFLICT DO NOTHING"""


def build_copy_id(column: str) -> str:
    """Return SQL for the id of a copy: a UUID of version 8 (RFC 9562).

    The id is built from the time and a hash of two ids: the clone's and the original message's. The
    statements for vectors and for the result can therefore compute it again, without a table of
    ids. The ids of one clone are next to each other in the index. Parameters: the id of the clone
    and the first 15 characters.
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
    """Return the SELECT of old and new ids, and of the other columns if `with_messages` is True."""
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

_CLAIM_IS_HELD = "id = %s AND title_state = 'pending' AND title_attempts = %s"

# Requests titles for threads that have none and enough messages, and returns their ids.
REQUEST_TITLES = """UPDATE mastra_memory_thread t
SET title_state = 'pending', title_request = %s::jsonb, title_attempts = 0,
    title_due_at = clock_timestamp(), title_error = ''
WHERE t.id = ANY(%s) AND t.title = '' AND t.title_state = ''
    AND (SELECT count(*) FROM (SELECT 1 FROM mastra_memory_message m
        WHERE m.thread_id = t.id LIMIT %s) AS counted) >= %s
    AND EXISTS (SELECT 1 FROM mastra_memory_message m
        WHERE m.thread_id = t.id AND m.role = 'user' AND m.signal = '')
RETURNING t.id"""

# The index mastra_thread_title_due has these rows in this order.
LIST_DUE_TITLES = f"""SELECT id FROM mastra_memory_thread
WHERE title_state = 'pending' AND title_due_at <= {sql.DUE_TIME}
ORDER BY title_due_at LIMIT %s"""

# Claims a pending title: the new number of attempts is the token of the claim.
CLAIM_TITLE = f"""UPDATE mastra_memory_thread
SET title_state = CASE WHEN title = '' THEN 'pending' ELSE 'done' END,
    title_attempts = title_attempts + 1,
    title_due_at = clock_timestamp() + make_interval(secs => %s)
WHERE id = %s AND title_state = 'pending'
    AND title_due_at <= {sql.DUE_TIME}
RETURNING title, title_attempts, title_request, updated_at"""

# Extends the lease of a claim that is still held.
EXTEND_TITLE_LEASE = f"""UPDATE mastra_memory_thread
SET title_due_at = clock_timestamp() + make_interval(secs => %s) WHERE {_CLAIM_IS_HELD}"""

# Reads columns as text, for StoredMessage.
FIRST_MESSAGES = f"""SELECT {MESSAGE_COLUMNS} FROM mastra_memory_message m
WHERE m.thread_id = %s AND m.signal = '' AND m.role <> 'signal'
ORDER BY m.created_at, m.sequence LIMIT %s"""

# Ends a claim that is still held. A title that a person typed meanwhile is kept.
FINISH_TITLE = f"""UPDATE mastra_memory_thread
SET title_source = CASE WHEN title = '' AND %s <> '' THEN 'generated' ELSE title_source END,
    title = CASE WHEN title = '' THEN %s ELSE title END,
    title_state = CASE WHEN title <> '' OR %s <> '' THEN 'done' ELSE %s END,
    title_error = %s, title_due_at = NULL
WHERE {_CLAIM_IS_HELD}"""

# Ends a claim that is still held, because the thread has no text yet. A thread that has changed
# since the claim keeps its request: the messages that are saved meanwhile make no new one.
# Parameters: error, `updated_at` at the claim (twice), thread, attempts.
LEAVE_UNTITLED = f"""UPDATE mastra_memory_thread SET title_error = %s,
    title_state = CASE WHEN title <> '' THEN 'done' WHEN updated_at = %s THEN '' ELSE 'pending' END,
    title_due_at = CASE WHEN title = '' AND updated_at <> %s THEN clock_timestamp() END
WHERE {_CLAIM_IS_HELD}"""

# Makes a claimed title due again after a number of seconds.
RETRY_TITLE = f"""UPDATE mastra_memory_thread
SET title_due_at = clock_timestamp() + make_interval(secs => %s), title_error = %s
WHERE {_CLAIM_IS_HELD}"""
