"""SQL statements that store a batch of rows.

Each statement stores all rows of one kind, so the number of statements does not depend on the size
of the batch. `place` is the index of a row in its batch.
"""

# The ORM's `bulk_create(ignore_conflicts=True)` does not return which rows were inserted, and it
# cannot update only the rows that differ. The statements about threads take one array for each
# column, because one statement text serves batches of every size.
_THREADS = """SELECT id, resource_id, title, to_tsvector(%s::regconfig, words) AS title_search,
        title_source, metadata, clone_source_id, created_at, updated_at
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::jsonb[],
        %s::text[], %s::timestamptz[], %s::timestamptz[])
    AS i(id, resource_id, title, words, title_source, metadata, clone_source_id, created_at,
        updated_at)"""

INSERT_THREADS = f"""INSERT INTO mastra_memory_thread (id, resource_id, title, title_search,
        title_source, metadata, clone_source_id, created_at, updated_at)
    {_THREADS} ON CONFLICT (id) DO NOTHING RETURNING id, resource_id"""

UPDATE_THREAD_TIMES = f"""UPDATE mastra_memory_thread t SET updated_at = i.updated_at
    FROM ({_THREADS}) i
    WHERE t.id = i.id AND t.resource_id = i.resource_id AND t.updated_at < i.updated_at"""

UPDATE_THREADS = f"""UPDATE mastra_memory_thread t SET title = i.title,
        title_search = i.title_search, title_source = i.title_source, metadata = i.metadata,
        clone_source_id = i.clone_source_id
    FROM ({_THREADS}) i
    WHERE t.id = i.id AND t.resource_id = i.resource_id
        AND (t.title, t.metadata, t.clone_source_id) IS DISTINCT FROM
            (i.title, i.metadata, i.clone_source_id)
    RETURNING t.id"""

# Messages are the bulk of an import. COPY into a temporary table is several times faster than
# INSERT with parameters.
CREATE_MESSAGE_TABLE = """CREATE TEMPORARY TABLE IF NOT EXISTS mastra_import (place integer,
    id text, thread_id text, resource_id text, role text, type text, signal text, content jsonb,
    text text, words text, errors text, fields text, created_at timestamptz,
    edited_at timestamptz) ON COMMIT DELETE ROWS"""

# The table is not empty when an outer transaction has stored another batch.
EMPTY_MESSAGE_TABLE = "TRUNCATE mastra_import"

# Lets PostgreSQL sort the batch in memory.
SET_WORK_MEMORY = "SET LOCAL work_mem = '64MB'"

COPY_MESSAGES = """COPY mastra_import (place, id, thread_id, resource_id, role, type, signal,
    content, text, words, errors, fields, created_at, edited_at) FROM STDIN"""

# In the order of the source: `sequence` is assigned in this order and breaks ties of `created_at`.
INSERT_MESSAGES = """INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type,
        signal, content, text, search, created_at, edited_at)
    SELECT id, thread_id, resource_id, role, type, signal, content, text,
        mastra_memory_vector(%s::regconfig, words, errors, fields), created_at, edited_at
    FROM mastra_import ORDER BY place ON CONFLICT (id) DO NOTHING RETURNING id"""

# Messages that were edited here keep their content. The first of several rows with one id counts.
UPDATE_MESSAGES = """UPDATE mastra_memory_message m SET role = i.role, type = i.type,
        signal = i.signal, content = i.content, text = i.text,
        search = mastra_memory_vector(%s::regconfig, i.words, i.errors, i.fields)
    FROM (SELECT DISTINCT ON (id) * FROM mastra_import ORDER BY id, place) i
    WHERE m.id = i.id AND m.thread_id = i.thread_id AND m.edited_at IS NULL
        AND (m.role, m.type, m.content) IS DISTINCT FROM (i.role, i.type, i.content)
    RETURNING m.id"""

FIND_MESSAGES_OF_OTHER_THREADS = """SELECT DISTINCT i.id FROM mastra_import i
    JOIN mastra_memory_message m ON m.id = i.id WHERE m.thread_id <> i.thread_id"""

# A working memory and its revisions are stored in one statement. The ORM would need the generated
# ids of the working memories before it could insert the revisions.
_WORKING_MEMORIES = """SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::timestamptz[],
    %s::timestamptz[], %s::jsonb[]) WITH ORDINALITY
    AS i(thread_id, resource_id, content, created_at, updated_at, revisions, place)"""
_IS_SAME_MEMORY = "w.resource_id = i.resource_id AND w.thread_id IS NOT DISTINCT FROM i.thread_id"

INSERT_WORKING_MEMORIES = f"""WITH i AS MATERIALIZED ({_WORKING_MEMORIES}),
    inserted AS (
        INSERT INTO mastra_memory_workingmemory
            (scope, thread_id, resource_id, content, version, created_at, updated_at)
        SELECT CASE WHEN thread_id IS NULL THEN 'resource' ELSE 'thread' END, thread_id,
            resource_id, content,
            (SELECT max((r->>'version')::int) FROM jsonb_array_elements(revisions) r),
            created_at, updated_at
        FROM i ORDER BY resource_id, thread_id, place ON CONFLICT DO NOTHING
        RETURNING id, thread_id, resource_id),
    placed AS (
        SELECT DISTINCT ON (w.id) w.id, i.place, i.revisions FROM inserted w JOIN i
            ON {_IS_SAME_MEMORY} ORDER BY w.id, i.place),
    revisions AS (
        INSERT INTO mastra_memory_workingmemoryrevision
            (working_memory_id, version, content, source, created_at)
        SELECT placed.id, (r->>'version')::int, r->>'content', r->>'source',
            (r->>'createdAt')::timestamptz
        FROM placed, jsonb_array_elements(placed.revisions) r)
    SELECT place FROM placed"""

UPDATE_WORKING_MEMORIES = f"""WITH i AS MATERIALIZED ({_WORKING_MEMORIES}),
    locked AS MATERIALIZED (
        SELECT w.id FROM mastra_memory_workingmemory w JOIN i ON {_IS_SAME_MEMORY}
        ORDER BY w.resource_id, w.thread_id FOR NO KEY UPDATE OF w),
    updated AS (
        UPDATE mastra_memory_workingmemory w SET content = i.content, version = w.version + 1,
            updated_at = greatest(w.updated_at, i.updated_at)
        FROM i WHERE {_IS_SAME_MEMORY} AND w.content <> i.content
            AND w.id IN (SELECT id FROM locked)
        RETURNING w.id, w.version, w.content, i.place),
    revisions AS (
        INSERT INTO mastra_memory_workingmemoryrevision
            (working_memory_id, version, content, source)
        SELECT id, version, content, 'import' FROM updated)
    SELECT place FROM updated"""
