"""Messages by their words: candidates hold any of them, BM25 ranks.

A word counts more the rarer it is within the scope of the search, which `ts_rank` does not know.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mastra_memory import sql
from mastra_memory.search import filters
from mastra_memory.search.query import WordQuery, is_phrase
from mastra_memory.search.scope import VISIBLE, SearchScope
from mastra_memory.search.scored import Scored

MAX_CANDIDATES = 4_000
"""Beyond so many messages that hold a word, the newest are ranked."""
MAX_COUNTED = 50_000
"""How far the scope is counted; a word's rarity hardly changes beyond."""
MAX_TITLES = 200

SAID_ONCE = 0.0607927
"""`ts_rank` of a word that occurs once."""
SATURATION = 1.2
LENGTH_SHARE = 0.75
"""BM25's k1 and b."""


def find_by_words(
    query: WordQuery,
    scope: SearchScope,
    *,
    limit: int,
    matching: Mapping[str, Any] | None = None,
) -> list[Scored]:
    """The best messages, best first, newer ones first among equals; one statement.

    Words of a thread's title count for its matching messages and for its newest one. `matching`
    is a filter in Mastra's language; see `filters`.
    """
    if query.filter is None or limit <= 0:
        return []
    statement, params = _statement(query, scope, limit, filters.for_message(matching))
    return [Scored(*cells) for cells in sql.rows(statement, params)]


def _statement(
    query: WordQuery, scope: SearchScope, limit: int, matching: sql.Where
) -> tuple[str, list[Any]]:
    messages, threads = scope.condition("m"), scope.thread_condition("t")
    titles = query.as_prefixes()
    places = range(len(query.terms))
    # What stands for a thread found by its title: the newest message without an excluded word.
    newest = f"""SELECT m.id, m.thread_id, m.created_at, m.sequence, m.search AS words
        FROM mastra_memory_message m
        WHERE m.thread_id = n.id AND {VISIBLE} AND {matching}
            AND {_none_of("m.search", query.excluded)}
        ORDER BY m.created_at DESC, m.sequence DESC LIMIT 1"""
    statement = f"""
        WITH found AS MATERIALIZED (
            SELECT m.id, m.thread_id, m.created_at, m.sequence, m.search AS words
            FROM mastra_memory_message m
            WHERE {messages} AND {VISIBLE} AND {matching} AND m.search @@ %s::tsquery
            ORDER BY m.created_at DESC, m.sequence DESC LIMIT {MAX_CANDIDATES}),
        named AS MATERIALIZED (
            SELECT id, {_ranks(titles)} FROM (
                SELECT t.id, mastra_memory_words('simple', t.title) AS words
                FROM mastra_memory_thread t
                WHERE {threads} AND mastra_memory_words('simple', t.title) @@ %s::tsquery
                ORDER BY t.updated_at DESC LIMIT {MAX_TITLES}) t),
        ranked AS MATERIALIZED (
            SELECT id, thread_id, created_at, sequence, length(words)::float8 AS size,
                {_ranks(query)}
            FROM (SELECT * FROM found UNION ALL
                SELECT top.* FROM named n CROSS JOIN LATERAL ({newest}) top
                WHERE top.id NOT IN (SELECT id FROM found)) f),
        counted AS MATERIALIZED (
            SELECT greatest(avg(size), 1) AS size, count(*) AS found,
                CASE WHEN count(*) < {MAX_CANDIDATES} THEN '-infinity' ELSE min(created_at) END
                    AS oldest,
                {", ".join(f"count(*) FILTER (WHERE r{at} > 0)::float8 AS df{at}" for at in places)}
            FROM ranked),
        sized AS MATERIALIZED (
            SELECT c.*, greatest(c.found, (SELECT count(*) FROM (
                SELECT 1 FROM mastra_memory_message m
                WHERE {messages} AND m.created_at >= c.oldest LIMIT {MAX_COUNTED}) m))::float8
                AS whole
            FROM counted c),
        scope AS MATERIALIZED (SELECT size, {", ".join(_rarity(at) for at in places)} FROM sized)
        SELECT w.id, w.thread_id, w.created_at, w.sequence,
            ({" + ".join(_bm25(at) for at in places)})::float8 AS score
        FROM scope s CROSS JOIN LATERAL (
            SELECT r.id, r.thread_id, r.created_at, r.sequence, {SATURATION}::float8
                * ({1 - LENGTH_SHARE} + {LENGTH_SHARE}::float8 * r.size / s.size) AS length,
                {", ".join(_frequency(at) for at in places)}
            FROM ranked r) w
        LEFT JOIN named n ON n.id = w.thread_id
        ORDER BY score DESC, w.created_at DESC, w.sequence DESC LIMIT %s"""
    return statement, [
        *messages.params,
        *matching.params,
        query.filter,
        *titles.terms,
        *threads.params,
        titles.filter,
        *query.terms,
        *matching.params,
        *query.excluded,
        *messages.params,
        limit,
    ]


def _none_of(column: str, excluded: Sequence[str]) -> str:
    return " AND ".join(f"NOT {column} @@ %s::tsquery" for _ in excluded) or "TRUE"


def _ranks(query: WordQuery) -> str:
    """How much of each term is in `words`; a phrase counts as a word said once."""
    said = [
        f"(words @@ %s::tsquery)::int * {SAID_ONCE}"
        if is_phrase(term)
        else "ts_rank(words, %s::tsquery)"
        for term in query.terms
    ]
    return ", ".join(f"{rank} AS r{at}" for at, rank in enumerate(said))


def _frequency(at: int) -> str:
    """How often a word is said.

    A tsvector has no function that tells, but `ts_rank` of one word is 0.1 / 1.644934 (pi squared
    over six) times the sum of 1/i^2 up to its count n, and the rest of that sum is nearly
    1 / (n + 0.5).
    """
    count = f"1 / greatest(1.644934::float8 - 16.44934::float8 * r.r{at}, 0.001) - 0.5"
    return f"CASE WHEN r.r{at} > 0 THEN {count} ELSE 0 END AS tf{at}"


def _rarity(at: int) -> str:
    return f"ln(1 + (whole - df{at} + 0.5) / (df{at} + 0.5)) AS idf{at}"


def _bm25(at: int) -> str:
    own = f"w.tf{at} * {SATURATION + 1}::float8 / (w.tf{at} + w.length)"
    return f"s.idf{at} * ({own} + CASE WHEN n.r{at} > 0 THEN 1 ELSE 0 END)"
