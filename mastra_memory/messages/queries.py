"""SQL statements that read, store, change and delete messages."""

from mastra_memory.db import sql
from mastra_memory.embedding.queue import EMBEDDABLE

MESSAGE_COLUMNS = sql.MESSAGE_COLUMNS

# SQL and not the ORM, because one statement has to lock, check and upsert a batch of any size.
# `locked` locks the threads in the order of their ids (see db.locking), including the old threads
# of messages that are moved. A message that was moved to another thread after `locked` looked it up
# does not match the WHERE of the upsert and is not stored. The last SELECT then calls
# mastra_memory_refuse(), which raises an error, so that a part of a batch is never stored.
# Sequences are drawn in the order of the batch, but rows are inserted in the order of their ids:
# two transactions that insert the same new ids in different orders would cause a deadlock.
# `closed` and `reopened` return resolved and waiting reviews to the reviewers when a customer
# writes again. They are part of this statement because a separate one would cost each save a round
# trip and could be lost between the two. A message that existed before, or that is much older than
# the review's last change, was sent again or restored and does not reopen anything.
# Other packages can extend the statement with table expressions that read `locked` and `saved`.
_STORE = f"""WITH locked AS MATERIALIZED (
    SELECT id, updated_at FROM mastra_memory_thread
    WHERE id = ANY (ARRAY(SELECT unnest(%b::text[]) UNION
        SELECT thread_id FROM mastra_memory_message WHERE id = ANY(%b::text[])))
    ORDER BY id FOR NO KEY UPDATE),
touched AS (
    UPDATE mastra_memory_thread SET updated_at = {sql.NEXT_UPDATED_AT}
    WHERE id IN (SELECT id FROM locked) AND id = ANY(%b::text[])
    RETURNING id, resource_id, updated_at),
saved AS (
    INSERT INTO mastra_memory_message AS m (id, thread_id, resource_id, role, type, signal,
        content, text, search, created_at, sequence)
    SELECT n.id, n.thread_id, n.resource_id, n.role, n.type, n.signal, n.content::jsonb, n.text,
        CASE WHEN %s THEN mastra_memory_vector(%s::regconfig, n.words, n.errors, n.fields) END,
        coalesce(nullif(n.created_at, '')::timestamptz, n.updated_at), n.sequence
    FROM (SELECT i.*, t.updated_at, nextval('mastra_memory_message_sequence') AS sequence
        FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[],
            %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[])
            WITH ORDINALITY AS i(id, thread_id, resource_id, role, type, signal, content, text,
                created_at, words, errors, fields, position)
        JOIN touched t ON t.id = i.thread_id AND t.resource_id = i.resource_id
        ORDER BY i.position) n
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE SET thread_id = excluded.thread_id, role = excluded.role,
        type = excluded.type, signal = excluded.signal, content = excluded.content,
        text = excluded.text, search = excluded.search
    WHERE m.resource_id = excluded.resource_id AND m.thread_id IN (SELECT id FROM locked)
    RETURNING m.id, {sql.format_time("m.created_at")} AS created, m.sequence, m.thread_id,
        m.resource_id, m.role, m.signal, m.created_at),
closed AS (
    SELECT r.thread_id, r.status FROM mastra_memory_review r
    WHERE %s AND r.status IN ('resolved', 'waiting') AND EXISTS (SELECT FROM saved s
        WHERE s.thread_id = r.thread_id AND s.role = 'user'
            AND s.created_at > r.updated_at - interval '1 hour'
            AND NOT EXISTS (SELECT FROM mastra_memory_message o WHERE o.id = s.id))
    FOR UPDATE),
reopened AS (
    UPDATE mastra_memory_review r SET status = 'new', resolved_at = NULL, changed_by_id = NULL,
        version = r.version + 1, updated_at = clock_timestamp()
    FROM closed WHERE r.thread_id = closed.thread_id RETURNING r.thread_id),
logged AS (
    INSERT INTO mastra_memory_threadchange (thread_id, kind, before, after)
    SELECT thread_id, 'review', jsonb_build_object('status', status), '{{"status": "new"}}'
    FROM closed)"""


def store_messages(expressions: str = "", columns: str = "") -> str:
    """Return SQL that stores a batch, and returns id, time and sequence of each message.

    Parameters: the threads, the messages, the threads, whether to write search words, the language,
    the columns of the messages, whether to reopen reviews, those of the expressions, the number of
    messages.

    Args:
        expressions: Further table expressions, separated by commas.
        columns: Further columns of the result, after the fourth.
    """
    return f"""{_STORE}{expressions and f",{expressions}"}
SELECT s.id, s.created, s.sequence, CASE WHEN c.stored <> %s THEN mastra_memory_refuse() END
    {columns and f", {columns}"}
FROM (SELECT count(*) AS stored FROM saved) c LEFT JOIN saved s ON TRUE"""


STORE_MESSAGES = store_messages()


# SQL and not the ORM, because it inserts the product of messages and models where vectors are
# missing, without reading a text.
REQUEST_VECTORS = f"""INSERT INTO mastra_memory_embeddingrequest
    (message_id, thread_id, resource_id, model)
SELECT m.id, m.thread_id, m.resource_id, w.model
FROM mastra_memory_message m CROSS JOIN unnest(%s::text[]) AS w(model)
WHERE m.id = ANY(%s) AND {EMBEDDABLE}
    AND NOT EXISTS (SELECT 1 FROM mastra_memory_messageembedding e
        WHERE e.message_id = m.id AND e.model = w.model)
ORDER BY m.id, w.model ON CONFLICT (message_id, model) DO NOTHING"""

# SQL and not `bulk_update`, which needs a CASE with two parameters for each message.
MARK_EDITED = """UPDATE mastra_memory_message m SET created_at = i.created_at,
    edited_at = clock_timestamp()
FROM unnest(%s::text[], %s::timestamptz[]) AS i(id, created_at) WHERE m.id = i.id"""

_TOOL_INVOCATIONS = """'$.parts[*] ? (@.type == "tool-invocation").toolInvocation'"""
# The id, the state, and whether there are arguments, of each tool call in a message.
_TOOL_PARTS = f"""(SELECT jsonb_agg(jsonb_build_array(i ->> 'toolCallId', i ->> 'state',
        coalesce(i -> 'args', 'null') NOT IN ('null', '{{}}', '""')))
    FROM jsonb_path_query(m.content, {_TOOL_INVOCATIONS}) AS i)::text"""
TOOL_COLUMNS = f"""m.id, m.thread_id, {sql.format_time("m.created_at")}, m.sequence,
    m.content_bytes, m.role, {_TOOL_PARTS}"""


def list_tool_messages(source: str) -> str:
    """Return SQL that selects the messages with tool calls of `source`, without their content.

    SQL and not the ORM, which cannot read the elements of JSON lists.
    """
    return f"""SELECT {TOOL_COLUMNS} FROM {source}
        WHERE jsonb_path_exists(m.content, {_TOOL_INVOCATIONS})"""


def _list_near_tool_messages(sign: str, direction: str) -> str:
    """Return SQL for messages with any of some tool calls, near a message before or after it.

    Each row of parameters is one search, with its thread, time, sequence and distance. The scan of
    the index ends at the distance. SQL and not the ORM, which has no lateral joins.
    """
    order = f"m.created_at {direction}, m.sequence {direction}"
    return f"""SELECT {TOOL_COLUMNS}
        FROM unnest(%s::text[], %s::timestamptz[], %s::bigint[], %s::bigint[])
            AS a(thread_id, created_at, sequence, distance)
        CROSS JOIN LATERAL (
            SELECT * FROM (
                SELECT * FROM mastra_memory_message m WHERE m.thread_id = a.thread_id
                    AND (m.created_at, m.sequence) {sign} (a.created_at, a.sequence)
                ORDER BY {order} LIMIT a.distance) m
            WHERE jsonb_path_query_array(m.content, '$.parts[*].toolInvocation.toolCallId')
                ?| %s::text[]
            ORDER BY {order} LIMIT %s) m"""


LIST_EARLIER_TOOL_MESSAGES = _list_near_tool_messages("<", "DESC")
LIST_LATER_TOOL_MESSAGES = _list_near_tool_messages(">", "ASC")


def delete_messages(condition: sql.Where) -> str:
    """Return SQL that deletes the messages, updates their threads and returns the count.

    It takes the parameters of the condition twice, then whether a part may be deleted. SQL and not
    the ORM, because threads are locked before their messages, in the order of a save, in one
    statement. A message that was moved to another thread after `matching` looked it up is not
    deleted. Unless a part may be deleted, the statement then rolls itself back with
    mastra_memory_refuse().
    """
    return f"""WITH matching AS MATERIALIZED (
        SELECT thread_id FROM mastra_memory_message WHERE {condition}),
    locked AS MATERIALIZED (
        SELECT id FROM mastra_memory_thread WHERE id = ANY (ARRAY(SELECT thread_id FROM matching))
        ORDER BY id FOR NO KEY UPDATE),
    touched AS (UPDATE mastra_memory_thread SET updated_at = {sql.NEXT_UPDATED_AT}
        WHERE id IN (SELECT id FROM locked) RETURNING id),
    deleted AS (DELETE FROM mastra_memory_message
        WHERE {condition} AND thread_id IN (SELECT id FROM touched) RETURNING id)
    SELECT count(*), CASE WHEN NOT %s AND count(*) <> (SELECT count(*) FROM matching)
        THEN mastra_memory_refuse() END
    FROM deleted"""
