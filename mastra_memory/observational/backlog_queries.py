"""SQL statements that find unobserved messages of all threads or resources.

Messages without a token count are estimated by their size: about five bytes of JSON for a token.
"""

from mastra_memory.observational.tracking_queries import THREAD_CURSOR

# One page of threads. Parameters: scope, the id after which the page begins, thread or NULL twice,
# resource or NULL twice, the size of the page.
BACKLOG_OF_THREADS = """SELECT t.id, t.resource_id, b.messages, b.tokens
FROM (SELECT %s::text AS scope) s
CROSS JOIN LATERAL (SELECT id, resource_id FROM mastra_memory_thread WHERE id > %s
        AND (%s::text IS NULL OR id = %s) AND (%s::text IS NULL OR resource_id = %s)
    ORDER BY id LIMIT %s) t
LEFT JOIN mastra_memory_observationalrecord r ON r.thread_id = t.id
    AND r.superseded_by_id IS NULL
CROSS JOIN LATERAL (SELECT count(*) AS messages,
        coalesce(sum(coalesce(o.token_count, m.content_bytes / 5)), 0)::bigint AS tokens
    FROM mastra_memory_message m
    LEFT JOIN mastra_memory_messageobservation o ON o.message_id = m.id AND o.scope = s.scope
    LEFT JOIN mastra_memory_observationchunk c ON c.id = o.chunk_id
    WHERE m.thread_id = t.id AND m.signal <> 'state' AND c.activated_at IS NULL
        AND (o.message_id IS NOT NULL
            OR m.created_at > coalesce(r.last_observed_at, '-infinity'))) b
ORDER BY t.id"""

# One page of resources, with the same parameters.
BACKLOG_OF_RESOURCES = f"""SELECT g.resource_id, g.resource_id, sum(b.messages)::bigint,
    sum(b.tokens)::bigint
FROM (SELECT %s::text AS scope) s
CROSS JOIN LATERAL (SELECT DISTINCT resource_id FROM mastra_memory_thread WHERE resource_id > %s
        AND (%s::text IS NULL OR id = %s) AND (%s::text IS NULL OR resource_id = %s)
    ORDER BY resource_id LIMIT %s) g
JOIN mastra_memory_thread t ON t.resource_id = g.resource_id
CROSS JOIN LATERAL (SELECT count(*) AS messages,
        coalesce(sum(coalesce(o.token_count, m.content_bytes / 5)), 0)::bigint AS tokens
    FROM mastra_memory_message m
    LEFT JOIN mastra_memory_messageobservation o ON o.message_id = m.id AND o.scope = s.scope
    LEFT JOIN mastra_memory_observationchunk c ON c.id = o.chunk_id
    WHERE m.thread_id = t.id AND m.signal <> 'state' AND c.activated_at IS NULL
        AND (o.message_id IS NOT NULL OR m.created_at > coalesce({THREAD_CURSOR}, '-infinity'))) b
GROUP BY g.resource_id ORDER BY g.resource_id"""
