"""SQL that Django's migrations cannot say: a sequence, owner-keeping foreign keys, a function."""

CREATE_SEQUENCE = "CREATE SEQUENCE mastra_memory_message_sequence"
DROP_SEQUENCE = "DROP SEQUENCE mastra_memory_message_sequence"

# What hangs on a thread follows its owner and goes with it, set by set, inside the database.
_BELONGS_TO_THREAD = """
ALTER TABLE mastra_memory_{table} ADD CONSTRAINT mastra_{name}_thread_fk
    FOREIGN KEY (thread_id, resource_id) REFERENCES mastra_memory_thread (id, resource_id)
    ON UPDATE CASCADE ON DELETE CASCADE
"""
_BELONGS_TO = """
ALTER TABLE mastra_memory_{table} ADD CONSTRAINT mastra_{name}_fk
    FOREIGN KEY ({column}) REFERENCES mastra_memory_{target} (id) ON DELETE CASCADE
"""
ADD_FOREIGN_KEYS = [
    _BELONGS_TO_THREAD.format(table="message", name="message"),
    _BELONGS_TO_THREAD.format(table="workingmemory", name="wm"),
    _BELONGS_TO_THREAD.format(table="observationalrecord", name="om"),
    _BELONGS_TO.format(
        table="workingmemoryrevision",
        name="wm_revision",
        column="working_memory_id",
        target="workingmemory",
    ),
    _BELONGS_TO.format(
        table="observationchunk", name="chunk", column="record_id", target="observationalrecord"
    ),
]
DROP_FOREIGN_KEYS = [
    "ALTER TABLE mastra_memory_message DROP CONSTRAINT mastra_message_thread_fk",
    "ALTER TABLE mastra_memory_workingmemory DROP CONSTRAINT mastra_wm_thread_fk",
    "ALTER TABLE mastra_memory_observationalrecord DROP CONSTRAINT mastra_om_thread_fk",
    "ALTER TABLE mastra_memory_workingmemoryrevision DROP CONSTRAINT mastra_wm_revision_fk",
    "ALTER TABLE mastra_memory_observationchunk DROP CONSTRAINT mastra_chunk_fk",
]

# Searchable words: accents folded (combining marks U+0300 to U+036F dropped after decomposing),
# capped so that no text can outgrow a tsvector (1 MB). ASCII text, the common case, skips the fold.
CREATE_WORDS = r"""
CREATE FUNCTION mastra_memory_fold(words text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN CASE WHEN octet_length(words) = length(words) THEN words
        ELSE regexp_replace(normalize(words, NFD), U&'[\0300-\036f]', '', 'g') END;
CREATE FUNCTION mastra_memory_words(language regconfig, words text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
    RETURN to_tsvector(language, mastra_memory_fold(left(words, 100000)));
"""
DROP_WORDS = """
DROP FUNCTION mastra_memory_words(regconfig, text);
DROP FUNCTION mastra_memory_fold(text);
"""
