"""Messages by their words: candidates hold any of them, BM25 ranks.

A word counts more the rarer it is within the scope of the search, which `ts_rank` does not know.
In a long scope the rarer words bring the candidates and the common ones only rank them: a message
that holds nothing but common words would not be among the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mastra_memory.db import sql
from mastra_memory.search import metadata_filters, term_statistics
from mastra_memory.search.query import WordQuery, is_phrase
from mastra_memory.search.scope import VISIBLE, SearchScope
from mastra_memory.search.term_statistics import TermStatistics
from mastra_memory.search.types import ScoredMessage

MAX_CANDIDATES = 4_000
"""Beyond so many messages that hold a word, the newest are ranked."""
MAX_CANDIDATES_LONG_SCOPE = 1_000
"""The same in a long scope; messages with the rarer words come first then."""
MIN_RARE_CANDIDATES = 200
MAX_RARE_CANDIDATES = 400
"""Of candidates: words are added, the rarest first, until there are enough; not beyond plenty."""
MAX_RANKING_TERMS = 8
"""Words that count in a long scope; the others are common beside the rarest."""
MAX_COUNTED_MESSAGES = 50_000
"""How far the scope is counted; a word's rarity hardly changes beyond."""
MAX_TITLES = 200

TS_RANK_SINGLE_OCCURRENCE = 0.0607927
"""`ts_rank` of a word that occurs once."""
K1 = 1.2
B = 0.75
"""BM25's k1 and b."""


def find_by_words(
    query: WordQuery,
    scope: SearchScope,
    *,
    limit: int,
    matching: Mapping[str, Any] | None = None,
    known: TermStatistics | None = None,
) -> list[ScoredMessage]:
    """The best messages, best first, newer ones first among equals; at most two statements.

    Words of a thread's title count for its matching messages and for its newest one. `matching`
    is a filter in Mastra's language; see `filters`. `known` is how rare the words are in the
    scope, where that was asked already.
    """
    if query.filter is None or limit <= 0:
        return []
    plan = _plan_terms(query, scope, limit, known)
    statement, params = _build_statement(
        plan, scope, limit, metadata_filters.build_message_condition(matching)
    )
    return [ScoredMessage(*cells) for cells in sql.fetch_all(statement, params)]


@dataclass(frozen=True, slots=True)
class _TermPlan:
    """Which words bring candidates, and what is known of how rare the words are."""

    query: WordQuery
    """The words that count."""
    filter: str | None
    """What a candidate must match."""
    first: str | None
    """Candidates that match this come before newer ones."""
    candidates: int
    """How many are ranked at most."""
    min_document_frequencies: Sequence[float]
    """For each term how many messages hold it at least, for all that is known."""
    messages: int | None = None
    """In the scope; None when that must be counted still."""


def _plan_terms(
    query: WordQuery, scope: SearchScope, limit: int, known: TermStatistics | None
) -> _TermPlan:
    whole = _TermPlan(query, query.filter, None, MAX_CANDIDATES, [0.0] * len(query.terms))
    if not scope.is_named or query.required or len(query.terms) < 2:
        return whole
    known = known or term_statistics.estimate_term_statistics(query.terms, scope)
    if known.messages <= MAX_RARE_CANDIDATES or not known.is_known:
        return replace(whole, messages=known.messages)
    rarest = sorted(range(len(query.terms)), key=known.expected)[:MAX_RANKING_TERMS]
    terms = [query.terms[place] for place in rarest]
    bringing, candidates, rarer = 0, 0.0, 0
    for expected in map(known.expected, rarest):
        if (
            candidates >= max(MIN_RARE_CANDIDATES, limit)
            and candidates + expected > MAX_RARE_CANDIDATES
        ):
            break
        bringing += 1
        candidates += expected
        rarer += candidates <= MAX_RARE_CANDIDATES
    # Of a word that brings candidates it will be seen how many they are, unless they are too many.
    seen = bringing if candidates <= MAX_RARE_CANDIDATES else rarer
    return _TermPlan(
        query=replace(query, terms=terms),
        filter=replace(query, terms=terms[:bringing]).filter,
        first=replace(query, terms=terms[:rarer]).filter if rarer < bringing else None,
        candidates=MAX_CANDIDATES_LONG_SCOPE,
        min_document_frequencies=[0.0] * seen + [known.expected(place) for place in rarest[seen:]],
        messages=known.messages,
    )


def _build_statement(
    plan: _TermPlan, scope: SearchScope, limit: int, matching: sql.Where
) -> tuple[str, list[Any]]:
    query = plan.query
    messages, threads = scope.condition("m"), scope.thread_condition("t")
    titles = query.as_prefixes()
    places = range(len(query.terms))
    # What stands for a thread found by its title: the newest message without an excluded word,
    # whose own words may not have been written yet.
    newest = f"""SELECT m.id, m.thread_id, m.created_at, m.sequence,
            coalesce(m.search, ''::tsvector) AS words
        FROM mastra_memory_message m
        WHERE m.thread_id = n.id AND {VISIBLE} AND {matching}
            AND {_exclude_terms("m.search", query.excluded)}
        ORDER BY m.created_at DESC, m.sequence DESC LIMIT 1"""
    told = f"""id, thread_id, created_at, sequence, length(words)::float8 AS size,
        {", ".join(_term_frequency_sql(term, at) for at, term in enumerate(query.terms))}"""
    newest_first = "m.created_at"
    if plan.first:  # one number is sorted by several times faster than two columns
        newest_first = "date_part('epoch', m.created_at) + (m.search @@ %s::tsquery)::int * 1e12"
    whole, counting = "%s", [plan.messages]
    if plan.messages is None:
        whole, counting = _COUNT_SCOPE.format(messages=messages), messages.params
    statement = f"""
        WITH found AS MATERIALIZED (
            SELECT {told} FROM (
                SELECT m.id, m.thread_id, m.created_at, m.sequence, m.search AS words
                FROM mastra_memory_message m
                WHERE {messages} AND {VISIBLE} AND {matching} AND m.search @@ %s::tsquery
                ORDER BY {newest_first} DESC, m.sequence DESC LIMIT {plan.candidates}) m),
        named AS MATERIALIZED (
            SELECT id, {", ".join(f"words @@ %s::tsquery AS t{at}" for at in places)} FROM (
                SELECT t.id, mastra_memory_words('simple', t.title) AS words
                FROM mastra_memory_thread t
                WHERE {threads} AND mastra_memory_words('simple', t.title) @@ %s::tsquery
                ORDER BY t.updated_at DESC LIMIT {MAX_TITLES}) t),
        ranked AS MATERIALIZED (
            SELECT * FROM found UNION ALL
            SELECT {told} FROM (SELECT top.* FROM named n CROSS JOIN LATERAL ({newest}) top
                WHERE top.id NOT IN (SELECT id FROM found)) f),
        counted AS MATERIALIZED (
            SELECT greatest(avg(size), 1) AS size, count(*) AS found,
                CASE WHEN count(*) < {plan.candidates} THEN '-infinity' ELSE min(created_at) END
                    AS oldest,
                {", ".join(_document_frequency_sql(at) for at in places)}
            FROM ranked),
        sized AS MATERIALIZED (
            SELECT c.*, greatest(c.found, {whole})::float8 AS whole FROM counted c),
        scope AS MATERIALIZED (SELECT size, {", ".join(_idf_sql(at) for at in places)} FROM sized)
        SELECT w.id, date_part('epoch', w.created_at), w.sequence,
            ({" + ".join(_bm25_sql(at) for at in places)})::float8 AS score
        FROM scope s CROSS JOIN LATERAL (
            SELECT r.*, {K1}::float8
                * ({1 - B} + {B}::float8 * r.size / s.size) AS length
            FROM ranked r OFFSET 0) w
        LEFT JOIN named n ON n.id = w.thread_id
        ORDER BY score DESC, w.created_at DESC, w.sequence DESC LIMIT %s"""
    return statement, [
        *query.terms,
        *messages.params,
        *matching.params,
        plan.filter,
        *filter(None, [plan.first]),
        *titles.terms,
        *threads.params,
        titles.filter,
        *query.terms,
        *matching.params,
        *query.excluded,
        *plan.min_document_frequencies,
        *counting,
        limit,
    ]


_COUNT_SCOPE = f"""(SELECT count(*) FROM (SELECT 1 FROM mastra_memory_message m
    WHERE {{messages}} AND m.created_at >= c.oldest LIMIT {MAX_COUNTED_MESSAGES}) m)"""


def _exclude_terms(column: str, excluded: Sequence[str]) -> str:
    return " AND ".join(f"NOT {column} @@ %s::tsquery" for _ in excluded) or "TRUE"


def _term_frequency_sql(term: str, at: int) -> str:
    """How often a term is said in `words`; a phrase counts as a word said once.

    A tsvector has no function that tells, but `ts_rank` of one word is 0.1 / 1.644934 (pi squared
    over six) times the sum of 1/i^2 up to its count n, and the rest of that sum is nearly
    1 / (n + 0.5). What is taken off in the end makes it 0 for a word that is not there.
    """
    rank = "ts_rank(words, %s::tsquery)"
    if is_phrase(term):
        rank = f"(words @@ %s::tsquery)::int * {TS_RANK_SINGLE_OCCURRENCE}"
    rest = f"greatest(1.644934::float8 - 16.44934::float8 * {rank}, 0.001)"
    return f"1 / {rest} - 1 / 1.644934::float8 AS tf{at}"


def _document_frequency_sql(at: int) -> str:
    return f"greatest(count(*) FILTER (WHERE tf{at} > 0.5), %s)::float8 AS df{at}"


def _idf_sql(at: int) -> str:
    return f"ln(1 + (whole - df{at} + 0.5) / (df{at} + 0.5)) AS idf{at}"


def _bm25_sql(at: int) -> str:
    own = f"w.tf{at} * {K1 + 1}::float8 / (w.tf{at} + w.length)"
    return f"s.idf{at} * ({own} + CASE WHEN n.t{at} THEN 1 ELSE 0 END)"
