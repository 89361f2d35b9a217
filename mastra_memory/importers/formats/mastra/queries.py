"""SQL statements that read Mastra's tables.

The tables belong to another application and have no models here. They are read from a database of
their own, which Django is not connected to. Names of tables are in braces: `MastraDatabase` adds
the schema.
"""

from mastra_memory.importers.formats.mastra.databases import MastraDatabase

_RECORD_COLUMNS = (
    "id",
    "lookupKey",
    "scope",
    "resourceId",
    "threadId",
    "activeObservations",
    "originType",
    "config",
    "generationCount",
    "pendingMessageTokens",
    "totalTokensObserved",
    "observationTokenCount",
    "observedMessageIds",
    "observedTimezone",
    "bufferedObservations",
    "bufferedObservationTokens",
    "bufferedMessageIds",
    "bufferedReflection",
    "bufferedReflectionTokens",
    "bufferedReflectionInputTokens",
    "reflectedObservationLineCount",
    "bufferedObservationChunks",
    "lastBufferedAtTokens",
    "metadata",
)
"""Columns of observational records that are read unchanged; older databases lack some of them."""

_UNUSED_COLUMNS = frozenset({"lastBufferedAtTimeZ"})
"""Columns that exist, but that Mastra never writes."""

COUNT_MESSAGES = "SELECT count(*) AS messages FROM {mastra_messages}"


def select_threads(database: MastraDatabase) -> str:
    """Return a statement for all threads."""
    columns = database.list_columns("mastra_threads")
    return f"""SELECT id, "resourceId", title, metadata,
            {database.time_expression("createdAt", columns)} AS created_at,
            {database.time_expression("updatedAt", columns)} AS updated_at
        FROM {{mastra_threads}} ORDER BY id"""


def select_resources(database: MastraDatabase) -> str:
    """Return a statement for all resources, with their working memory."""
    columns = database.list_columns("mastra_resources")
    return f"""SELECT id, "workingMemory", metadata,
            {database.time_expression("createdAt", columns)} AS created_at,
            {database.time_expression("updatedAt", columns)} AS updated_at
        FROM {{mastra_resources}} ORDER BY id"""


def select_messages(database: MastraDatabase) -> str:
    """Return a statement for all messages, with the resource of their thread, in their order."""
    columns = database.list_columns("mastra_messages")
    created_at = database.time_expression("m.createdAt", columns)
    return f"""SELECT m.id, m.thread_id, m.content, m.role, m.type, {created_at} AS created_at,
            m."resourceId", t.id AS known_thread, t."resourceId" AS thread_resource
        FROM {{mastra_messages}} m LEFT JOIN {{mastra_threads}} t ON t.id = m.thread_id
        ORDER BY m.thread_id, m."createdAt", m.{database.insertion_order}"""


def select_observations(database: MastraDatabase) -> str:
    """Return a statement for all rows, with their rank in their generation and the live generation.

    The live generation of a lookup key is that of its only row which is not superseded. Without
    exactly one such row it is the newest generation.
    """
    columns = database.list_columns("mastra_observational_memory")
    plain = ", ".join(
        f'o."{name}"' if name in columns else f'NULL AS "{name}"' for name in _RECORD_COLUMNS
    )
    superseded = 'o."supersededBy" IS NULL' if "supersededBy" in columns else "1 = 1"
    created, updated, observed, buffered = (
        database.time_expression(f"o.{name}", columns - _UNUSED_COLUMNS)
        if name in columns
        else "NULL"
        for name in ("createdAt", "updatedAt", "lastObservedAt", "lastBufferedAtTime")
    )
    cursor = "NULL"
    if "lastObservedAt" in columns:  # the database fills the column with a time zone by default
        cursor = f'CASE WHEN o."lastObservedAt" IS NOT NULL THEN {observed} END'
    return f"""WITH o AS (
        SELECT o.*, CASE WHEN {superseded} THEN 1 ELSE 0 END AS not_superseded
        FROM {{mastra_observational_memory}} o),
    live AS (
        SELECT o.*, sum(not_superseded) OVER lineage AS live_rows,
            max(CASE WHEN not_superseded = 1 THEN "generationCount" END) OVER lineage AS named,
            max("generationCount") OVER lineage AS newest
        FROM o WINDOW lineage AS (PARTITION BY "lookupKey")),
    ranked AS (
        SELECT live.*, CASE WHEN live_rows = 1 THEN named ELSE newest END AS live_generation,
            row_number() OVER (PARTITION BY "lookupKey", "generationCount"
                ORDER BY CASE WHEN live_rows = 1 THEN not_superseded END DESC,
                    "createdAt", id) AS place
        FROM live)
    SELECT {plain}, {created} AS created_at, {updated} AS updated_at,
        {cursor} AS last_observed_at, {buffered} AS last_buffered_at_time,
        o.place, o.live_generation, t.id AS known_thread, t."resourceId" AS thread_resource
    FROM ranked o LEFT JOIN {{mastra_threads}} t ON t.id = o."threadId"
    ORDER BY o."lookupKey", o."generationCount", o.place"""
