"""SQL statements about the state of messages: pending, buffered or observed.

SQL and not the ORM, because each statement changes any number of rows at once, or reads only the
rows of pending messages, however long the conversation is.
"""

from mastra_memory.db import sql
from mastra_memory.observational.keys import RecordKey

_LIVE = "r.superseded_by_id IS NULL"
_RECORDS = "mastra_memory_observationalrecord"
_TRACKING = "mastra_memory_messageobservation"
_CHUNKS = "mastra_memory_observationchunk"

THREAD_CURSOR = "mastra_memory_parse_time(t.metadata #>> '{mastra,om,lastObservedAt}')"
"""In resource scope, the time up to which a thread is observed."""


# An imported record may list messages as observed although they are later than its cursor.
_NOT_OBSERVED_BY_ID = """(r.observed_message_ids IS NULL
    OR jsonb_typeof(r.observed_message_ids) <> 'array' OR NOT r.observed_message_ids ? m.id)"""
_HAS_NO_ROW = f"""NOT EXISTS (SELECT 1 FROM {_TRACKING} o
    WHERE o.message_id = m.id AND o.scope = r.scope)"""

_UNTRACKED = f"""m.signal <> 'state' AND {_NOT_OBSERVED_BY_ID} AND {_HAS_NO_ROW}"""

# Parameter: the id of the live record, of a thread or of a resource.
TRACK_MISSING_OF_THREAD = f"""INSERT INTO {_TRACKING} (message_id, scope, thread_id, resource_id)
SELECT m.id, r.scope, m.thread_id, m.resource_id
FROM {_RECORDS} r JOIN mastra_memory_message m ON m.thread_id = r.thread_id
    AND m.created_at > coalesce(r.last_observed_at, '-infinity')
WHERE r.id = %s AND {_UNTRACKED}
ORDER BY m.id ON CONFLICT DO NOTHING"""
TRACK_MISSING_OF_RESOURCE = f"""INSERT INTO {_TRACKING} (message_id, scope, thread_id, resource_id)
SELECT m.id, r.scope, m.thread_id, m.resource_id
FROM {_RECORDS} r
JOIN (SELECT t.id, t.resource_id, {THREAD_CURSOR} AS cursor FROM mastra_memory_thread t
    OFFSET 0) t ON t.resource_id = r.resource_id
JOIN mastra_memory_message m ON m.thread_id = t.id
    AND m.created_at > coalesce(t.cursor, '-infinity')
WHERE r.id = %s AND {_UNTRACKED}
ORDER BY m.id ON CONFLICT DO NOTHING"""


def has_untracked(key: RecordKey) -> str:
    """Return SQL for whether a subject has untracked messages. Parameters: the subject, the scope.

    Used only before a record exists, when few messages have a row.
    """
    subject = "m.thread_id" if key.thread_id is not None else "m.resource_id"
    return f"""SELECT EXISTS (SELECT FROM mastra_memory_message m
    WHERE {subject} = %s AND m.signal <> 'state' AND NOT EXISTS (
        SELECT FROM {_TRACKING} o WHERE o.message_id = m.id AND o.scope = %s))"""


def _unobserved_rows(key: RecordKey, *, pending_only: bool = False) -> str:
    """Return SQL for the rows of unobserved messages: pending ones, then buffered ones.

    Parameters: those of `_key_params`.
    """
    rows, _ = key.condition("o")
    pending = f"""SELECT o.message_id, o.thread_id, o.token_count FROM {_TRACKING} o
        WHERE {rows} AND o.scope = '{key.scope}' AND o.chunk_id IS NULL"""
    if pending_only:
        return pending
    records, _ = key.record_condition("r")
    return f"""{pending} UNION ALL
        SELECT o.message_id, o.thread_id, o.token_count FROM {_RECORDS} r
        JOIN {_CHUNKS} c ON c.record_id = r.id AND c.activated_at IS NULL
        JOIN {_TRACKING} o ON o.chunk_id = c.id
        WHERE {records} AND {_LIVE}"""


def list_uncounted(key: RecordKey) -> str:
    """Return SQL for unobserved messages without a token count.

    Parameters: the subject twice, the number of messages.
    """
    return f"""SELECT {sql.MESSAGE_COLUMNS}
    FROM ({_unobserved_rows(key)}) u JOIN mastra_memory_message m ON m.id = u.message_id
    WHERE u.token_count IS NULL ORDER BY m.id LIMIT %s"""


# Parameters: the scope, the ids.
LIST_UNCOUNTED_OF = f"""SELECT {sql.MESSAGE_COLUMNS}
FROM {_TRACKING} o JOIN mastra_memory_message m ON m.id = o.message_id
WHERE o.scope = %s AND o.message_id = ANY(%s) AND o.token_count IS NULL"""

# Stores token counts of messages that have not been edited since they were read. A message that
# another transaction is changing is left out: its tokens must be counted again anyway.
# Parameters: ids, hashes of the contents, token counts, scope.
SET_TOKEN_COUNTS = f"""WITH unchanged AS MATERIALIZED (
    SELECT m.id, i.tokens FROM unnest(%s::text[], %s::text[], %s::int[]) AS i(id, hash, tokens)
    JOIN mastra_memory_message m ON m.id = i.id
    WHERE md5(m.content::text) = i.hash ORDER BY m.id FOR SHARE OF m SKIP LOCKED)
UPDATE {_TRACKING} o SET token_count = u.tokens FROM unchanged u
WHERE o.message_id = u.id AND o.scope = %s"""


def count_pending(key: RecordKey) -> str:
    """Return SQL that counts the unobserved messages. Parameters: the subject twice.

    Columns: the numbers of messages, tokens, uncounted messages and threads among the pending
    ones; then arrays with one element per buffered chunk: its messages, their tokens, and how many
    of them are uncounted. The counts come from partial indexes, so that the cost depends on the
    pending messages only, not on the length of the thread.
    """
    rows, _ = key.condition("o")
    records, _ = key.record_condition("r")
    return f"""SELECT p.*, b.* FROM (
        SELECT count(*), coalesce(sum(o.token_count), 0),
            count(*) FILTER (WHERE o.token_count IS NULL), count(DISTINCT o.thread_id)
        FROM {_TRACKING} o
        WHERE {rows} AND o.scope = '{key.scope}' AND o.chunk_id IS NULL) p
    CROSS JOIN (
        SELECT coalesce(array_agg(messages ORDER BY position), '{{}}'),
            coalesce(array_agg(tokens ORDER BY position), '{{}}'),
            coalesce(sum(uncounted), 0)
        FROM (SELECT c.position, s.* FROM {_RECORDS} r
            JOIN {_CHUNKS} c ON c.record_id = r.id AND c.activated_at IS NULL
            CROSS JOIN LATERAL (
                SELECT count(*) AS messages, coalesce(sum(o.token_count), 0)::int AS tokens,
                    count(*) - count(o.token_count) AS uncounted
                FROM {_TRACKING} o WHERE o.chunk_id = c.id) s
            WHERE {records} AND {_LIVE}) chunks) b"""


def list_unobserved(key: RecordKey, *, exclude_buffered: bool, in_thread: bool) -> str:
    """Return SQL for unobserved messages, oldest first, until a number of tokens is reached.

    At least one message is returned. Parameters: the subject (twice with buffered messages), the
    thread if `in_thread`, the tokens.
    """
    only = "WHERE u.thread_id = %s" if in_thread else ""
    return f"""SELECT {sql.MESSAGE_COLUMNS} FROM (
        SELECT u.message_id, sum(coalesce(u.token_count, 0)) OVER (
            ORDER BY x.created_at, x.sequence ROWS UNBOUNDED PRECEDING)
            - coalesce(u.token_count, 0) AS tokens_before
        FROM ({_unobserved_rows(key, pending_only=exclude_buffered)}) u
        JOIN mastra_memory_message x ON x.id = u.message_id {only}) u
    JOIN mastra_memory_message m ON m.id = u.message_id
    WHERE u.tokens_before < %s ORDER BY m.created_at, m.sequence"""


def list_threads(key: RecordKey) -> str:
    """Return SQL for the threads with unobserved messages: id, tokens, time of the oldest.

    Parameters: the subject twice.
    """
    return f"""SELECT u.thread_id, coalesce(sum(u.token_count), 0),
        {sql.format_time("min(m.created_at)")}
    FROM ({_unobserved_rows(key)}) u JOIN mastra_memory_message m ON m.id = u.message_id
    GROUP BY u.thread_id ORDER BY min(m.created_at), u.thread_id"""


# Parameters: thread, scope; record, thread, scope.
READ_TOKEN_COUNTS = f"""SELECT o.message_id, o.token_count FROM {_TRACKING} o
WHERE o.thread_id = %s AND o.scope = %s AND o.chunk_id IS NULL AND o.token_count IS NOT NULL
UNION ALL SELECT o.message_id, o.token_count
FROM {_CHUNKS} c JOIN {_TRACKING} o ON o.chunk_id = c.id
WHERE c.record_id = %s AND c.activated_at IS NULL AND o.thread_id = %s AND o.scope = %s
    AND o.token_count IS NOT NULL"""

# A condition on the messages `m` of a thread: not observed. It lists the few unobserved ids from
# indexes, instead of looking up the state of each message of a long thread.
# Parameters: thread, scope; record, thread, scope; thread, cursor, record.
IS_UNOBSERVED = f"""m.id = ANY (ARRAY(
    SELECT o.message_id FROM {_TRACKING} o
        WHERE o.thread_id = %s AND o.scope = %s AND o.chunk_id IS NULL
    UNION ALL SELECT o.message_id FROM {_CHUNKS} c JOIN {_TRACKING} o ON o.chunk_id = c.id
        WHERE c.record_id = %s AND c.activated_at IS NULL AND o.thread_id = %s AND o.scope = %s
    UNION ALL SELECT m.id FROM mastra_memory_message m JOIN {_RECORDS} r ON r.id = %s
        WHERE m.thread_id = %s AND m.created_at > %s
            AND {_NOT_OBSERVED_BY_ID} AND {_HAS_NO_ROW}))"""
# Without a cursor most messages are unobserved, so the rows of each message are looked up.
# Parameter: scope.
IS_NOT_ACTIVATED = f"""NOT EXISTS (SELECT 1 FROM {_TRACKING} o
    JOIN {_CHUNKS} c ON c.id = o.chunk_id
    WHERE o.message_id = m.id AND o.scope = %s AND c.activated_at IS NOT NULL)"""


# Imports and exports

_IS_SUBJECT = """(m.thread_id = r.thread_id
    OR (r.thread_id IS NULL AND m.resource_id = r.resource_id))"""

# Parameter: the ids of the chunks. Buffered chunks of superseded records are not used any more.
TRACK_CHUNKS = f"""INSERT INTO {_TRACKING} AS o
    (message_id, scope, thread_id, resource_id, chunk_id)
SELECT DISTINCT ON (m.id, r.scope) m.id, r.scope, m.thread_id, m.resource_id, c.id
FROM {_CHUNKS} c JOIN {_RECORDS} r ON r.id = c.record_id
CROSS JOIN jsonb_array_elements_text(
    CASE jsonb_typeof(c.message_ids) WHEN 'array' THEN c.message_ids ELSE '[]' END) AS i(id)
JOIN mastra_memory_message m ON m.id = i.id AND {_IS_SUBJECT}
WHERE c.id = ANY(%s) AND (c.activated_at IS NOT NULL OR {_LIVE})
ORDER BY m.id, r.scope, r.generation_count, c.position
ON CONFLICT (message_id, scope) DO UPDATE SET chunk_id = excluded.chunk_id
WHERE o.chunk_id IS NULL"""

# Parameters: record, message ids.
TRACK_PENDING = f"""INSERT INTO {_TRACKING} (message_id, scope, thread_id, resource_id)
SELECT m.id, r.scope, m.thread_id, m.resource_id
FROM {_RECORDS} r JOIN mastra_memory_message m ON {_IS_SUBJECT}
WHERE r.id = %s AND m.id = ANY(%s) ORDER BY m.id ON CONFLICT DO NOTHING"""

# Parameter: the ids of the records.
RELEASE_BUFFERED_MESSAGES = f"""UPDATE {_TRACKING} o SET chunk_id = NULL FROM {_CHUNKS} c
WHERE c.record_id = ANY(%s) AND c.activated_at IS NULL AND o.chunk_id = c.id"""

# Parameter: the ids of the records, twice.
LIST_PENDING_BEFORE_CURSOR = f"""SELECT r.id, array_agg(m.id ORDER BY m.created_at, m.sequence)
FROM {_RECORDS} r
JOIN {_TRACKING} o ON o.scope = 'thread' AND o.thread_id = r.thread_id AND o.chunk_id IS NULL
JOIN mastra_memory_message m ON m.id = o.message_id AND m.created_at <= r.last_observed_at
WHERE r.id = ANY(%s) AND {_LIVE} GROUP BY r.id
UNION ALL SELECT r.id, array_agg(m.id ORDER BY m.created_at, m.sequence)
FROM {_RECORDS} r
JOIN {_TRACKING} o ON o.scope = 'resource' AND o.resource_id = r.resource_id
    AND o.chunk_id IS NULL
JOIN mastra_memory_message m ON m.id = o.message_id AND m.created_at <= r.last_observed_at
WHERE r.id = ANY(%s) AND r.thread_id IS NULL AND {_LIVE} GROUP BY r.id"""
