"""The SQL with which a save tracks its messages, and requests work on them.

It extends the statement that stores the messages, and needs no transaction and no round trip of its
own. `test_saving.py` compares its decisions with those of `thresholds.py`.
"""

from functools import cache

from mastra_memory.content import tokens
from mastra_memory.observational import claim_queries
from mastra_memory.observational.keys import ScopeName
from mastra_memory.observational.tracking_queries import THREAD_CURSOR

_LIVE = "r.superseded_by_id IS NULL"
_RECORDS = "mastra_memory_observationalrecord"
_TRACKING = "mastra_memory_messageobservation"
_CHUNKS = "mastra_memory_observationchunk"

# The statement reads its tables as they were when it began, so the rows that it stores are counted
# from `given`. If it had to wait for the lock of a thread, another transaction may have changed
# the thread meanwhile. Rows of that transaction are not counted here, so `is_late` leaves the
# decision to the caller.
#
# A message that has no row and is not later than the cursor was observed before it was imported or
# cloned. If it is saved again, it stays observed: `imported_sequence` tells it from a new message
# with an old time.
_COUNTED = f"""
given AS MATERIALIZED (SELECT %s::jsonb AS tokens, %s::text AS agent_id, %s::int AS message_tokens,
    %s::int AS budget, %s::float8 AS buffer_tokens, %s::float8 AS near_threshold),
counted AS MATERIALIZED (
    SELECT s.id, s.thread_id, s.resource_id, (g.tokens ->> s.id)::int AS tokens,
        o.message_id IS NOT NULL AS was_tracked,
        o.chunk_id IS NULL OR o.{{subject}} <> s.{{subject}} AS is_pending,
        l.updated_at <> t.updated_at AS is_late
    FROM saved s CROSS JOIN given g
    JOIN locked l ON l.id = s.thread_id JOIN mastra_memory_thread t ON t.id = s.thread_id
    LEFT JOIN {_TRACKING} o ON o.message_id = s.id AND o.scope = '{{scope}}'
    LEFT JOIN {_RECORDS} r ON {{is_record_of_s}} AND {_LIVE}
    WHERE s.signal <> 'state' AND (o.message_id IS NOT NULL OR r.id IS NULL
        OR s.sequence > r.imported_sequence OR s.created_at > coalesce({{cursor}}, '-infinity'))),
tracked AS (INSERT INTO {_TRACKING} (message_id, scope, thread_id, resource_id, token_count)
    SELECT c.id, '{{scope}}', c.thread_id, c.resource_id, c.tokens FROM counted c
    WHERE NOT c.was_tracked ORDER BY c.id ON CONFLICT DO NOTHING)"""

# For each thread or resource: the tokens of messages without a chunk and with one, including the
# overhead of lists like `tracking.count_pending`, and the number of chunks.
_STATE = f"""
subjects AS (
    SELECT {{key}} AS subject_id, min(c.resource_id) AS resource_id, bool_or(c.is_late) AS is_late,
        coalesce(sum(c.tokens) FILTER (WHERE c.is_pending), 0) AS tokens,
        array_agg(DISTINCT c.thread_id) AS thread_ids
    FROM counted c GROUP BY {{key}}),
state AS (
    SELECT s.subject_id, s.resource_id, r.id AS record_id, r.observation_token_count AS log_tokens,
        s.is_late OR coalesce(r.config ? '_overrides', FALSE) AS is_unsure,
        s.tokens + p.tokens + {tokens.TOKENS_PER_LIST} * ({{lists}}) AS loose, b.tokens AS buffered,
        {tokens.TOKENS_PER_LIST} * b.chunks AS overhead, p.uncounted + b.uncounted AS uncounted
    FROM subjects s LEFT JOIN {_RECORDS} r ON {{is_record_of_subject}} AND {_LIVE}
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(o.token_count), 0) AS tokens, {{other_lists}} AS lists,
            count(*) - count(o.token_count) AS uncounted
        FROM {_TRACKING} o
        WHERE o.{{subject}} = s.subject_id AND o.scope = '{{scope}}' AND o.chunk_id IS NULL
            AND o.message_id NOT IN (SELECT id FROM counted)) p
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(m.tokens), 0) AS tokens, coalesce(sum(m.uncounted), 0) AS uncounted,
            count(*) FILTER (WHERE m.messages > 0) AS chunks
        FROM {_CHUNKS} c CROSS JOIN LATERAL (
            SELECT count(*) AS messages, coalesce(sum(o.token_count), 0) AS tokens,
                count(*) - count(o.token_count) AS uncounted
            FROM {_TRACKING} o WHERE o.chunk_id = c.id) m
        WHERE c.record_id = r.id AND c.activated_at IS NULL) b)"""

# The decisions of `thresholds.py` for a record without overrides. Messages without a token count
# make work due as well: a cycle counts their tokens first and then compares with the thresholds.
# Before a record exists, so do messages that were saved without observational memory.
_DECISION = f"""
decided AS MATERIALIZED (
    SELECT s.*, s.uncounted > 0
        OR s.loose + s.buffered >= greatest(
            g.message_tokens, coalesce(g.budget - coalesce(s.log_tokens, 0), 0))
        OR s.loose - s.overhead >= g.buffer_tokens
            / CASE WHEN s.loose + s.buffered >= g.near_threshold THEN 2 ELSE 1 END
        OR s.record_id IS NULL AND EXISTS (
            SELECT FROM mastra_memory_message m WHERE m.{{subject}} = s.subject_id
                AND m.signal <> 'state' AND m.id NOT IN (SELECT id FROM counted)
                AND NOT EXISTS (SELECT FROM {_TRACKING} o
                    WHERE o.message_id = m.id AND o.scope = '{{scope}}')) AS is_due
    FROM state s CROSS JOIN given g),
due AS MATERIALIZED (
    SELECT r.id FROM {_RECORDS} r JOIN decided d ON d.record_id = r.id
    WHERE d.is_due AND NOT d.is_unsure AND {_LIVE} ORDER BY r.{{subject}}
    FOR NO KEY UPDATE OF r),
requested AS (
    UPDATE {_RECORDS} r SET agent_id = g.agent_id, due_at = {claim_queries.NEXT_DUE_TIME}
    FROM given g WHERE r.id IN (SELECT id FROM due) RETURNING r.id),
created AS (
    INSERT INTO {_RECORDS} (id, scope, thread_id, resource_id, origin_type, generation_count,
        active_observations, observation_token_count, total_tokens_observed,
        pending_message_tokens, observed_timezone, last_buffered_at_tokens, buffered_reflection,
        config, agent_id, due_at)
    SELECT gen_random_uuid()::text, '{{scope}}', {{thread}}, d.resource_id, 'initial', 0, '', 0, 0,
        0, 'UTC', 0, '', '{{{{}}}}', g.agent_id, clock_timestamp()::timestamptz(3)
    FROM decided d CROSS JOIN given g
    WHERE d.record_id IS NULL AND d.is_due AND NOT d.is_unsure ORDER BY d.subject_id
    ON CONFLICT DO NOTHING RETURNING id, {{subject}} AS subject_id)"""

# First column: the subjects that are due, each with the id of its record. The id is NULL if the
# caller has to decide, or if another transaction creates the record at the same time. Second
# column: the ids of messages that were tracked before. If their content changed, their tokens are
# recounted.
_COLUMNS = """CASE WHEN row_number() OVER () = 1 THEN (
        SELECT json_agg(json_build_array(d.subject_id, d.resource_id, coalesce(q.id, n.id)))
        FROM decided d LEFT JOIN requested q ON q.id = d.record_id
        LEFT JOIN created n ON n.subject_id = d.subject_id
        WHERE d.is_due OR d.is_unsure)::text END,
    CASE WHEN row_number() OVER () = 1 THEN (
        SELECT array_agg(c.id) FROM counted c WHERE c.was_tracked) END"""

_FRAGMENTS = {
    "thread": {
        "subject": "thread_id",
        "key": "c.thread_id",
        "cursor": "r.last_observed_at",
        "is_record_of_s": "r.thread_id = s.thread_id",
        "is_record_of_subject": "r.thread_id = s.subject_id",
        "thread": "d.subject_id",
        "lists": "1",
        "other_lists": "0",
    },
    "resource": {
        "subject": "resource_id",
        "key": "c.resource_id",
        "cursor": THREAD_CURSOR,
        "is_record_of_s": "r.resource_id = s.resource_id AND r.thread_id IS NULL",
        "is_record_of_subject": "r.resource_id = s.subject_id AND r.thread_id IS NULL",
        "thread": "NULL",
        "lists": "cardinality(s.thread_ids) + p.lists",
        "other_lists": "count(DISTINCT o.thread_id)"
        " FILTER (WHERE o.thread_id <> ALL(s.thread_ids))",
    },
}


@cache
def track_saved(scope: ScopeName) -> tuple[str, str]:
    """Return the table expressions that extend the statement of a save, and their columns.

    Parameters: JSON text of the token counts by message, the agent, `message_tokens`, the shared
    budget or NULL, `buffer_tokens` or NULL, the number of
    unobserved tokens from which chunks have half the size, or NULL.
    """
    expressions = ",".join((_COUNTED, _STATE, _DECISION))
    return expressions.format(**_FRAGMENTS[scope], scope=scope), _COLUMNS
