"""SQL statements of observational memory.

SQL and not the ORM, because each statement checks and changes a row atomically, with the clock of
the database, or changes any number of rows at once.
"""

from mastra_memory.db import sql
from mastra_memory.observational.keys import RecordKey

_LIVE = "r.superseded_by_id IS NULL"
_RECORDS = "mastra_memory_observationalrecord"
_TRACKING = "mastra_memory_messageobservation"
_CHUNKS = "mastra_memory_observationchunk"

THREAD_CURSOR = "mastra_memory_parse_time(t.metadata #>> '{mastra,om,lastObservedAt}')"
"""In resource scope, the time up to which a thread is observed."""


# The state of messages

# Marks messages as pending, or updates their token counts. A message that has no row and is not
# later than the cursor was observed before it was imported or cloned. If it is saved again, it
# stays observed: `imported_sequence` tells it from a new message with an old time.
# Parameters: ids, token counts.
_TRACK_SAVED = f"""INSERT INTO {_TRACKING} AS o
    (message_id, scope, thread_id, resource_id, token_count)
SELECT m.id, %s, m.thread_id, m.resource_id, i.tokens
FROM unnest(%%s::text[], %%s::int[]) AS i(id, tokens)
JOIN mastra_memory_message m ON m.id = i.id
LEFT JOIN {_TRACKING} old ON old.message_id = m.id AND old.scope = %s
%s
WHERE old.message_id IS NOT NULL OR r.id IS NULL OR m.sequence > r.imported_sequence
    OR m.created_at > coalesce(%s, '-infinity')
ORDER BY m.id
ON CONFLICT (message_id, scope) DO UPDATE SET token_count = excluded.token_count
WHERE o.token_count IS DISTINCT FROM excluded.token_count
RETURNING o.message_id"""
TRACK_SAVED = {
    "thread": _TRACK_SAVED
    % (
        "'thread'",
        "'thread'",
        f"LEFT JOIN {_RECORDS} r ON r.thread_id = m.thread_id AND {_LIVE}",
        "r.last_observed_at",
    ),
    "resource": _TRACK_SAVED
    % (
        "'resource'",
        "'resource'",
        f"""LEFT JOIN {_RECORDS} r ON r.resource_id = m.resource_id AND r.thread_id IS NULL
            AND {_LIVE}
        JOIN mastra_memory_thread t ON t.id = m.thread_id""",
        THREAD_CURSOR,
    ),
}

# A record that was imported may name messages after its cursor that are observed all the same.
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
    """Return SQL that tells if messages have no row. Parameters: the subject, the scope.

    It is used while there is no record, so that few messages have a row. The ORM has no anti-join
    that stops at the first message.
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


# Parameters: scope, ids, token counts.
SET_TOKEN_COUNTS = f"""UPDATE {_TRACKING} o SET token_count = i.tokens
FROM unnest(%s::text[], %s::int[]) AS i(id, tokens)
WHERE o.message_id = i.id AND o.scope = %s"""


STATE_COLUMNS = (
    "id",
    "observation_token_count",
    "buffered_reflection",
    "config",
    "unproductive_reflection_tokens",
    "reflection_operation",
    "reflection_expires_at",
)
"""The columns of a record that decide whether work is due.

They are in the order of the model's fields, which `Model.from_db` expects.
"""


def find_state(key: RecordKey) -> str:
    """Return SQL that selects `STATE_COLUMNS` of the live record. Parameter: the subject.

    The ORM would take longer to build this statement than the database to run it, and it is part of
    each save. Of a buffered reflection only the first character is read.
    """
    condition, _ = key.record_condition("r")
    columns = ", ".join(
        {"config": "r.config::text", "buffered_reflection": "left(r.buffered_reflection, 1)"}.get(
            name, f"r.{name}"
        )
        for name in STATE_COLUMNS
    )
    return f"SELECT {columns} FROM {_RECORDS} r WHERE {condition} AND {_LIVE}"


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


# Commits

# Gives messages to a chunk and returns those that it got. A message that was edited since the
# Observer read it stays pending; one that was deleted or moved to another thread or resource is
# not in the chunk; one that was observed meanwhile stays with its chunk.
# Parameters: chunk, thread, resource, scope, ids, hashes of the contents, token counts, whether
# messages of buffered chunks may be taken over.
ASSIGN_MESSAGES = f"""WITH assigned AS (
    INSERT INTO {_TRACKING} AS o
        (message_id, scope, thread_id, resource_id, token_count, chunk_id)
    SELECT m.id, s.scope, m.thread_id, m.resource_id,
        CASE WHEN md5(m.content::text) = i.hash THEN i.tokens END,
        CASE WHEN md5(m.content::text) = i.hash THEN s.chunk_id END
    FROM (SELECT %s::text AS chunk_id, %s::text AS thread_id, %s::text AS resource_id,
        %s::text AS scope) s
    CROSS JOIN unnest(%s::text[], %s::text[], %s::int[]) AS i(id, hash, tokens)
    JOIN mastra_memory_message m ON m.id = i.id AND m.thread_id = s.thread_id
        AND (s.scope = 'thread' OR m.resource_id = s.resource_id)
    ORDER BY m.id
    ON CONFLICT (message_id, scope) DO UPDATE SET chunk_id = excluded.chunk_id,
        token_count = excluded.token_count
    WHERE excluded.chunk_id IS NOT NULL AND (o.chunk_id IS NULL OR (%s AND EXISTS (
        SELECT 1 FROM {_CHUNKS} c WHERE c.id = o.chunk_id AND c.activated_at IS NULL)))
    RETURNING o.message_id, o.chunk_id, o.token_count)
SELECT a.message_id, a.token_count, {sql.format_time("m.created_at")}
FROM assigned a JOIN mastra_memory_message m ON m.id = a.message_id
WHERE a.chunk_id IS NOT NULL ORDER BY m.created_at, m.sequence"""

# Drops buffered chunks that contain one of these messages, and returns their ids. Their other
# messages become pending. Parameters: record, scope, message ids.
DROP_OVERLAPPING_CHUNKS = f"""WITH overlapping AS MATERIALIZED (
    SELECT c.id FROM {_CHUNKS} c WHERE c.record_id = %s AND c.activated_at IS NULL
        AND EXISTS (SELECT 1 FROM {_TRACKING} o
            WHERE o.chunk_id = c.id AND o.scope = %s AND o.message_id = ANY(%s))
    ORDER BY c.position)
UPDATE {_TRACKING} o SET chunk_id = NULL FROM overlapping d WHERE o.chunk_id = d.id
RETURNING d.id"""

# Parameter: the ids of the chunks.
LIST_MESSAGES_OF_CHUNKS = f"""SELECT o.message_id FROM {_TRACKING} o
JOIN mastra_memory_message m ON m.id = o.message_id
WHERE o.chunk_id = ANY(%s) ORDER BY m.created_at, m.sequence"""

NEXT_POSITION = f"SELECT coalesce(max(position) + 1, 0) FROM {_CHUNKS} WHERE record_id = %s"

# Parameters: the JSON text of the Observer's metadata, the thread.
SET_OBSERVER_METADATA = """UPDATE mastra_memory_thread t
SET metadata = jsonb_set(coalesce(t.metadata, '{}'), '{mastra}',
    CASE jsonb_typeof(t.metadata -> 'mastra') WHEN 'object' THEN t.metadata -> 'mastra'
        ELSE '{}' END || jsonb_build_object('om', %s::jsonb))
WHERE t.id = %s"""
LOCK_OBSERVER_METADATA = """SELECT (t.metadata #> '{mastra,om}')::text, t.title,
    t.title_source, t.metadata ->> 'titlePinned' = 'true'
FROM mastra_memory_thread t WHERE t.id = %s FOR NO KEY UPDATE"""

# Parameters: title, thread.
SET_TITLE = """UPDATE mastra_memory_thread SET title = %s, title_source = 'observed'
WHERE id = %s"""

_HAS_OBSERVER_METADATA = "t.metadata #> '{mastra,om}' IS NOT NULL"


def select_observed_threads(column: str) -> str:
    """Return SQL for threads with the Observer's metadata. Parameter: the value of the column."""
    return f"""SELECT t.id FROM mastra_memory_thread t
        WHERE t.{column} = %s AND {_HAS_OBSERVER_METADATA}"""


def remove_observer_metadata(column: str) -> str:
    """Return SQL that removes the Observer's metadata. Parameter: the value of the column."""
    return f"""UPDATE mastra_memory_thread t SET metadata = t.metadata #- '{{mastra,om}}'
        WHERE t.{column} = %s AND {_HAS_OBSERVER_METADATA}"""


def delete_records(condition: str) -> str:
    """Return SQL that deletes generations. Parameters: those of the condition."""
    return f"DELETE FROM {_RECORDS} r WHERE {condition}"


MOVE_BUFFERED_CHUNKS = f"""UPDATE {_CHUNKS} SET record_id = %s
WHERE record_id = %s AND activated_at IS NULL"""


# Copies

_COPIED_STATES = f"""INSERT INTO {_TRACKING}
    (message_id, scope, thread_id, resource_id, token_count, chunk_id)
SELECT i.new_id, o.scope, p.thread_id, p.resource_id, o.token_count, %s
FROM (SELECT %%s::text AS thread_id, %%s::text AS resource_id) p
CROSS JOIN unnest(%%s::text[], %%s::text[]) AS i(old_id, new_id)
JOIN {_TRACKING} o ON o.message_id = i.old_id %s
WHERE o.scope = %%s ORDER BY i.new_id"""

# Parameters: thread, resource, old and new message ids, scope.
COPY_STATES = _COPIED_STATES % ("o.chunk_id", "")
# Messages of other chunks than those that are copied become pending.
# Parameters: old ids, new ids, positions, threads, cycles, ranges, texts and JSON texts of message
# ids of the chunks; their record; those of COPY_STATES.
COPY_CHUNKS_AND_STATES = (
    f"""WITH i AS MATERIALIZED (
    SELECT * FROM unnest(%s::text[], %s::text[], %s::int[], %s::text[], %s::text[], %s::text[],
        %s::text[], %s::text[]) AS i(old_id, new_id, position, thread_id, cycle_id, range,
        observations, message_ids)),
chunks AS (INSERT INTO {_CHUNKS} (id, record_id, position, origin, thread_id, cycle_id, group_id,
        range, observations, token_count, message_ids, message_tokens, last_observed_at, hints,
        activated_at, created_at)
    SELECT i.new_id, %s, i.position, c.origin, i.thread_id, i.cycle_id, c.group_id, i.range,
        i.observations, c.token_count, i.message_ids::jsonb, c.message_tokens, c.last_observed_at,
        c.hints, c.activated_at, c.created_at
    FROM i JOIN {_CHUNKS} c ON c.id = i.old_id)
"""
    + _COPIED_STATES % ("k.new_id", "LEFT JOIN i k ON k.old_id = o.chunk_id")
)

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

# Events

# Nothing is inserted for a record that was deleted meanwhile.
# Parameters: cycle, thread, operation, state, JSON text of the data, user, state, record.
INSERT_EVENT = f"""INSERT INTO mastra_memory_observationevent (record_id, cycle_id, thread_id,
    operation, state, data, user_name, started_at, finished_at)
SELECT r.id, %s, %s, %s, %s, %s::jsonb, %s, clock_timestamp(),
    CASE WHEN %s <> 'running' THEN clock_timestamp() END
FROM {_RECORDS} r WHERE r.id = %s FOR KEY SHARE RETURNING id"""

# Parameters: state, JSON text of the data, error, input tokens, output tokens, cost, event.
FINISH_EVENT = """UPDATE mastra_memory_observationevent SET state = %s,
    finished_at = clock_timestamp(), data = data || %s::jsonb, error = %s, tokens_in = %s,
    tokens_out = %s, cost = %s
WHERE id = %s AND state = 'running'"""


def close_abandoned(condition: str) -> str:
    """Return SQL that ends running events. Parameters: error, operations, the condition's."""
    return f"""UPDATE mastra_memory_observationevent e SET state = 'failed',
        finished_at = clock_timestamp(), error = %s
    FROM {_RECORDS} r
    WHERE e.state = 'running' AND e.operation = ANY(%s) AND e.record_id = r.id AND {condition}"""


def newest_answer(key: RecordKey) -> str:
    """Return SQL for the newest message of the assistant. Parameter: the subject."""
    condition, _ = key.condition("m")
    return f"""SELECT {sql.MESSAGE_COLUMNS} FROM mastra_memory_message m
    WHERE {condition} AND m.role = 'assistant'
    ORDER BY m.created_at DESC, m.sequence DESC LIMIT 1"""
