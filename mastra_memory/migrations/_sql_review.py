"""SQL of the review tables: what hangs on a thread goes with it; indexes for finding threads."""

_TABLES = ("review", "reviewnote", "threadtag", "visit", "score", "threadchange")

ADD_FOREIGN_KEYS = [
    f"""ALTER TABLE mastra_memory_{table} ADD CONSTRAINT mastra_{table}_thread_fk
    FOREIGN KEY (thread_id) REFERENCES mastra_memory_thread (id) ON DELETE CASCADE"""
    for table in _TABLES
]
DROP_FOREIGN_KEYS = [
    f"ALTER TABLE mastra_memory_{table} DROP CONSTRAINT mastra_{table}_thread_fk"
    for table in _TABLES
]

# Both are small: few messages carry a failed tool call, and titles are short (and capped).
CREATE_INDEXES = [
    """CREATE INDEX mastra_message_tool_error ON mastra_memory_message (thread_id) WHERE
    content @? '$.parts[*].toolInvocation ? (@.state == "output-error" || @.isError == true)'""",
    """CREATE INDEX mastra_thread_title_words ON mastra_memory_thread
    USING gin (mastra_memory_words('simple', title))""",
]
DROP_INDEXES = [
    "DROP INDEX mastra_message_tool_error",
    "DROP INDEX mastra_thread_title_words",
]
