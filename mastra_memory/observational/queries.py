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
