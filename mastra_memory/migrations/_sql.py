"""SQL for what Django's migrations cannot express; migrations 0002 to 0006 run it."""

# One sequence for all messages. `Message.sequence` orders messages of the same millisecond.
CREATE_SEQUENCE = "CREATE SEQUENCE mastra_memory_message_sequence"
DROP_SEQUENCE = "DROP SEQUENCE mastra_memory_message_sequence"


def _add_foreign_key(
    table: str, name: str, columns: str, target: str, *, on_delete: str = "CASCADE"
) -> tuple[str, str]:
    """Return the SQL that adds a foreign key and the SQL that drops it."""
    references = "id, resource_id" if "," in columns else "id"
    on_update = " ON UPDATE CASCADE" if "," in columns else ""
    add = f"""ALTER TABLE mastra_memory_{table} ADD CONSTRAINT {name}
        FOREIGN KEY ({columns}) REFERENCES mastra_memory_{target} ({references})
        {on_update} ON DELETE {on_delete}"""
    return add, f"ALTER TABLE mastra_memory_{table} DROP CONSTRAINT {name}"


# Django emulates ON DELETE in Python: deleting a thread would load its messages. Keys on (thread,
# resource) also let the database update the owner of all rows when a thread is transferred.
_OWNED = "thread_id, resource_id"
FOREIGN_KEYS = [
    _add_foreign_key("message", "mastra_message_thread_fk", _OWNED, "thread"),
    _add_foreign_key("workingmemory", "mastra_wm_thread_fk", _OWNED, "thread"),
    _add_foreign_key("observationalrecord", "mastra_om_thread_fk", _OWNED, "thread"),
    # Deleting a thread keeps its usage, with null as thread and resource.
    _add_foreign_key(
        "modelusage", "mastra_usage_thread_fk", _OWNED, "thread", on_delete="SET NULL"
    ),
    _add_foreign_key(
        "workingmemoryrevision", "mastra_wm_revision_fk", "working_memory_id", "workingmemory"
    ),
    _add_foreign_key("observationchunk", "mastra_chunk_fk", "record_id", "observationalrecord"),
    _add_foreign_key("messageembedding", "mastra_embedding_message_fk", "message_id", "message"),
    _add_foreign_key("embeddingrequest", "mastra_embedding_request_fk", "message_id", "message"),
    *(
        _add_foreign_key(table, f"mastra_{table}_thread_fk", "thread_id", "thread")
        for table in ("review", "reviewnote", "threadtag", "visit", "score", "threadchange")
    ),
]

# The functions that turn a text into searchable words, and a query into a phrase. Migration 0006
# drops them.
#
# `fold` drops accents: combining marks U+0300 to U+036F after decomposition. The rest is composed
# again, for Hangul and kana. `spaced` puts spaces around characters of scripts that are written
# without spaces (Thai, Lao, Burmese, Khmer, kana, Han), so that a query finds a part of such a text
# as a phrase. It also replaces signs within words: otherwise PostgreSQL takes `tea/coffee` for a
# file name and `List<String>` for a tag, and their parts are not found. Both are faster for ASCII
# text, the common case. `words` cuts the text, because a tsvector is limited to 1 MB.
CREATE_SEARCH_FUNCTIONS = r"""
CREATE FUNCTION mastra_memory_fold(words text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN CASE WHEN octet_length(words) = length(words) THEN words
        ELSE normalize(regexp_replace(normalize(words, NFD), U&'[\0300-\036f]', '', 'g'), NFC)
        END;
CREATE FUNCTION mastra_memory_spaced(words text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN translate(CASE WHEN octet_length(words) = length(words) THEN words
        ELSE regexp_replace(words, '([\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3040-\u30ff'
            || '\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])', ' \1 ', 'g')
        END, '<>/\@=&?#:._-', repeat(' ', 13));
CREATE FUNCTION mastra_memory_words(language regconfig, words text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN to_tsvector(language, mastra_memory_spaced(mastra_memory_fold(left(words, 100000))));
CREATE FUNCTION mastra_memory_phrase(language regconfig, words text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN phraseto_tsquery(language, mastra_memory_spaced(mastra_memory_fold(words)));
"""
DROP_SEARCH_FUNCTIONS = """
DROP FUNCTION mastra_memory_phrase(regconfig, text);
DROP FUNCTION mastra_memory_words(regconfig, text);
DROP FUNCTION mastra_memory_spaced(text);
DROP FUNCTION mastra_memory_fold(text);
"""

# Indexes on a JSON path and on a function's result. Both are small: few messages contain a failed
# tool call, and titles are short.
CREATE_INDEXES = """
CREATE INDEX mastra_message_tool_error ON mastra_memory_message (thread_id) WHERE
    content @? '$.parts[*].toolInvocation ? (@.state == "output-error" || @.isError == true)';
CREATE INDEX mastra_thread_title_words ON mastra_memory_thread
    USING gin (mastra_memory_words('simple', title));
"""
DROP_INDEXES = """
DROP INDEX mastra_message_tool_error;
DROP INDEX mastra_thread_title_words;
"""
CREATE_TITLE_INDEX = """
CREATE INDEX mastra_thread_title_words ON mastra_memory_thread
    USING gin (mastra_memory_words('simple', title));
"""
DROP_TITLE_INDEX = "DROP INDEX mastra_thread_title_words"

# The parameters of `mastra_memory_vector` are those of `search.fields.MessageWords`. Weight D, the
# default, is that of the text; errors have weight C, and fields have A. `search/queries.py` gives
# the weights their values.
#
# The trigger keeps the words of a title from becoming stale, whoever changes it. A statement that
# writes both columns is left alone.
CREATE_WORD_FUNCTIONS = """
CREATE FUNCTION mastra_memory_vector(language regconfig, words text, errors text, fields text)
    RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN CASE WHEN errors = '' AND fields = '' THEN to_tsvector(language, words)
        ELSE to_tsvector(language, words) || setweight(to_tsvector(language, errors), 'C')
            || setweight(to_tsvector(language, fields), 'A') END;

CREATE FUNCTION mastra_memory_title_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.title_search IS NULL AND NEW.title = '' THEN
            NEW.title_search := '';
        END IF;
    ELSIF NEW.title_search IS NOT DISTINCT FROM OLD.title_search THEN
        NEW.title_search := CASE WHEN NEW.title = '' THEN ''::tsvector END;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER mastra_memory_title_inserted BEFORE INSERT ON mastra_memory_thread
    FOR EACH ROW EXECUTE FUNCTION mastra_memory_title_changed();
CREATE TRIGGER mastra_memory_title_changed BEFORE UPDATE OF title ON mastra_memory_thread
    FOR EACH ROW WHEN (OLD.title IS DISTINCT FROM NEW.title)
    EXECUTE FUNCTION mastra_memory_title_changed();
"""
DROP_WORD_FUNCTIONS = """
DROP TRIGGER mastra_memory_title_changed ON mastra_memory_thread;
DROP TRIGGER mastra_memory_title_inserted ON mastra_memory_thread;
DROP FUNCTION mastra_memory_title_changed();
DROP FUNCTION mastra_memory_vector(regconfig, text, text, text);
"""

# When the text of a message changes, delete its vectors and request new ones in the same
# transaction. A worker that still embeds the old text then no longer has its claim, and discards
# the vectors.
CREATE_TRIGGERS = r"""
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
DROP_TRIGGERS = """
DROP TRIGGER mastra_memory_message_moved ON mastra_memory_message;
DROP FUNCTION mastra_memory_message_moved();
DROP TRIGGER mastra_memory_text_changed ON mastra_memory_message;
DROP FUNCTION mastra_memory_text_changed();
"""

# The statement that saves a batch calls this to roll itself back if it could not store all
# messages; see `mastra_memory.messages.storage`.
CREATE_REFUSE_FUNCTION = """
CREATE FUNCTION mastra_memory_refuse() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'not every message could be stored' USING ERRCODE = 'MM001';
END $$
"""
DROP_REFUSE_FUNCTION = "DROP FUNCTION mastra_memory_refuse()"

# Messages of a few thousand characters stay in their row, uncompressed, so that most pages of
# messages are read without the TOAST table. The row of a thread changes with every save; free space
# in its page lets PostgreSQL update it in place (a HOT update).
SET_STORAGE = """
ALTER TABLE mastra_memory_message SET (toast_tuple_target = 8160);
ALTER TABLE mastra_memory_thread SET (fillfactor = 80);
"""
RESET_STORAGE = """
ALTER TABLE mastra_memory_message RESET (toast_tuple_target);
ALTER TABLE mastra_memory_thread RESET (fillfactor);
"""

OBSERVATION_FOREIGN_KEYS = [
    _add_foreign_key("messageobservation", "mastra_tracking_message_fk", "message_id", "message"),
    _add_foreign_key(
        "messageobservation", "mastra_tracking_chunk_fk", "chunk_id", "observationchunk"
    ),
    _add_foreign_key("observationevent", "mastra_om_event_fk", "record_id", "observationalrecord"),
]

# Set the successor of each existing generation, and track the messages of buffered chunks. Check
# the deferred foreign keys at once: PostgreSQL refuses to alter a table with pending checks.
LINK_GENERATIONS = """
UPDATE mastra_memory_observationalrecord r SET superseded_by_id = n.next_id
FROM (SELECT id, lead(id) OVER (
        PARTITION BY scope, thread_id, resource_id ORDER BY generation_count) AS next_id
    FROM mastra_memory_observationalrecord) n
WHERE n.id = r.id AND n.next_id IS NOT NULL;
SET CONSTRAINTS ALL IMMEDIATE;
UPDATE mastra_memory_observationalrecord
SET imported_sequence = (SELECT last_value FROM mastra_memory_message_sequence);
SET CONSTRAINTS ALL IMMEDIATE;
UPDATE mastra_memory_observationchunk c SET thread_id = r.thread_id
FROM mastra_memory_observationalrecord r WHERE r.id = c.record_id AND r.thread_id IS NOT NULL;
UPDATE mastra_memory_observationchunk c SET cycle_id = c.id
WHERE EXISTS (SELECT 1 FROM mastra_memory_observationchunk o WHERE o.record_id = c.record_id
    AND o.cycle_id = c.cycle_id AND o.position < c.position);
INSERT INTO mastra_memory_messageobservation
    (message_id, scope, thread_id, resource_id, chunk_id)
SELECT DISTINCT ON (m.id, r.scope) m.id, r.scope, m.thread_id, m.resource_id, c.id
FROM mastra_memory_observationchunk c
JOIN mastra_memory_observationalrecord r ON r.id = c.record_id AND r.superseded_by_id IS NULL
CROSS JOIN jsonb_array_elements_text(
    CASE jsonb_typeof(c.message_ids) WHEN 'array' THEN c.message_ids ELSE '[]' END) AS i(id)
JOIN mastra_memory_message m ON m.id = i.id AND (m.thread_id = r.thread_id
    OR (r.thread_id IS NULL AND m.resource_id = r.resource_id))
ORDER BY m.id, r.scope, c.position;
"""
# Undo migration 0003. Before it, all chunks were buffered, so delete the others.
KEEP_BUFFERED_CHUNKS = """
DELETE FROM mastra_memory_observationchunk WHERE activated_at IS NOT NULL;
UPDATE mastra_memory_observationalrecord SET origin_type = 'reflection'
WHERE origin_type = 'edit';
SET CONSTRAINTS ALL IMMEDIATE;
"""

# A message that moves to another thread or resource was not observed there, so it becomes pending.
# If it has no row, insert one if a record exists there. Otherwise a message that is older than the
# record's cursor would never be observed. If a message changes, its tokens are counted again.
#
# Clients write metadata, so a time in it may be any text.
CREATE_TRACKING_TRIGGERS = """
CREATE FUNCTION mastra_memory_parse_time(words text) RETURNS timestamptz
    LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    RETURN words::timestamptz;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

CREATE FUNCTION mastra_memory_tracking_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mastra_memory_messageobservation SET
        chunk_id = CASE WHEN CASE scope WHEN 'thread' THEN OLD.thread_id = NEW.thread_id
            ELSE OLD.resource_id = NEW.resource_id END THEN chunk_id END,
        thread_id = NEW.thread_id, resource_id = NEW.resource_id
    WHERE message_id = NEW.id;
    INSERT INTO mastra_memory_messageobservation (message_id, scope, thread_id, resource_id)
    SELECT NEW.id, s.scope, NEW.thread_id, NEW.resource_id
    FROM (SELECT 'thread' AS scope WHERE OLD.thread_id <> NEW.thread_id AND EXISTS (
            SELECT 1 FROM mastra_memory_observationalrecord r
            WHERE r.thread_id = NEW.thread_id AND r.superseded_by_id IS NULL)
        UNION ALL SELECT 'resource' WHERE EXISTS (
            SELECT 1 FROM mastra_memory_observationalrecord r
            WHERE r.resource_id = NEW.resource_id AND r.thread_id IS NULL
                AND r.superseded_by_id IS NULL)) s
    WHERE NEW.signal <> 'state'
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER mastra_memory_tracking_moved
    AFTER UPDATE OF thread_id, resource_id ON mastra_memory_message
    FOR EACH ROW WHEN ((OLD.thread_id, OLD.resource_id) IS DISTINCT FROM
        (NEW.thread_id, NEW.resource_id))
    EXECUTE FUNCTION mastra_memory_tracking_moved();

CREATE FUNCTION mastra_memory_tracking_recount() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mastra_memory_messageobservation SET token_count = NULL
    WHERE message_id = NEW.id AND token_count IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER mastra_memory_tracking_recount
    AFTER UPDATE OF content, role ON mastra_memory_message
    FOR EACH ROW WHEN ((OLD.role, OLD.content) IS DISTINCT FROM (NEW.role, NEW.content))
    EXECUTE FUNCTION mastra_memory_tracking_recount();
"""
DROP_TRACKING_TRIGGERS = """
DROP TRIGGER mastra_memory_tracking_recount ON mastra_memory_message;
DROP FUNCTION mastra_memory_tracking_recount();
DROP TRIGGER mastra_memory_tracking_moved ON mastra_memory_message;
DROP FUNCTION mastra_memory_tracking_moved();
DROP FUNCTION mastra_memory_parse_time(text);
"""
