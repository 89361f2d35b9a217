"""The SQL of searches.

Values are always passed as parameters; only names and SQL fragments are interpolated.
"""

from collections.abc import Sequence
from typing import Any

from mastra_memory.db import sql
from mastra_memory.embedding import embedder
from mastra_memory.embedding.embedder import Vector
from mastra_memory.embedding.vector_index import TABLE, VectorIndex
from mastra_memory.search.fields import HAS_FIELDS
from mastra_memory.search.query import is_phrase
from mastra_memory.search.scope import VISIBLE, SearchScope
from mastra_memory.search.types import ScoredMessage, TermPlan

SCORED_COLUMNS = "m.id, date_part('epoch', m.created_at), m.sequence"
"""The fields of `ScoredMessage` for a message `m`, without the score."""

MAX_TEXT_CHARACTERS = 100_000
"""Characters of each text that a search returns. A search may return hundreds of messages, and
each may have 20 MB. The words of a message are indexed up to the same limit."""


def find_pending(scope: SearchScope, model: str) -> tuple[bool, bool]:
    """Return whether the scope has messages or titles without words, and without vectors.

    This is a single statement because it runs before every search.
    """
    messages, requests = scope.condition("m"), scope.condition("r")
    threads = scope.thread_condition("t")
    found = sql.fetch_one(
        f"""SELECT EXISTS (SELECT FROM mastra_memory_message m
                WHERE m.search IS NULL AND {messages})
            OR EXISTS (SELECT FROM mastra_memory_thread t
                WHERE t.title_search IS NULL AND {threads}),
            EXISTS (SELECT FROM mastra_memory_embeddingrequest r
                WHERE {requests} AND r.model = %s AND r.error = '' AND r.failed_at IS NULL)""",
        [*messages.params, *threads.params, *requests.params, model],
    )
    assert found is not None
    return found[0], found[1]


def list_newest(scope: SearchScope, matching: sql.Where, limit: int) -> list[ScoredMessage]:
    """Return the newest messages `m` that match a condition, all with the score 0."""
    messages = scope.condition("m")
    rows = sql.fetch_all(
        f"""SELECT {SCORED_COLUMNS} FROM mastra_memory_message m
        WHERE {messages} AND {VISIBLE} AND {matching}
        ORDER BY m.created_at DESC, m.sequence DESC LIMIT %s""",
        [*messages.params, *matching.params, limit],
    )
    return [ScoredMessage(row[0], row[1], row[2], 0.0) for row in rows]


def list_ids(where: sql.Where) -> set[str]:
    """Return the ids of the messages `m` that match the condition."""
    rows = sql.fetch_all(f"SELECT m.id FROM mastra_memory_message m WHERE {where}", where.params)
    return {message_id for (message_id,) in rows}


def build_neighbours(
    anchor: str, columns: str, *, before: str, after: str, condition: str = "TRUE"
) -> str:
    """Return SQL that selects the messages before and after `anchor` in the same thread.

    Each side is one range scan of the index on (thread, created_at, sequence), even in a long
    thread. This is SQL because the ORM has no lateral joins.

    Args:
        anchor: Alias of a row with `thread_id`, `created_at` and `sequence`.
        columns: What to select of a neighbour `m`.
        before: SQL for the number of earlier messages to select, a parameter or a column.
        after: The same for later messages.
        condition: Which messages `m` count as neighbours.
    """

    def build_side(sign: str, direction: str, limit: str) -> str:
        return f"""(SELECT {columns} FROM mastra_memory_message m
            WHERE m.thread_id = {anchor}.thread_id AND {condition}
                AND (m.created_at, m.sequence) {sign} ({anchor}.created_at, {anchor}.sequence)
            ORDER BY m.created_at {direction}, m.sequence {direction} LIMIT {limit})"""

    return f"""{build_side("<", "DESC", before)} UNION ALL {build_side(">", "ASC", after)}"""


def read_with_context(message_ids: Sequence[str], before: int, after: int) -> list[sql.SqlRow]:
    """Return one row for each neighbour of each message, or one row if there is no neighbour.

    The columns are the message's id, thread, resource, role, text, time and thread title, then
    whether the neighbour is earlier, and the neighbour's id, role, text and time. One statement
    with lateral joins, where the ORM would need one query for each message.
    """
    neighbours = build_neighbours(
        "h",
        f"""(m.created_at, m.sequence) < (h.created_at, h.sequence) AS earlier,
            m.id, m.role, left(m.text, {MAX_TEXT_CHARACTERS}) AS text, m.created_at, m.sequence""",
        before="%s",
        after="%s",
        condition=VISIBLE,
    )
    return sql.fetch_all(
        f"""WITH h AS MATERIALIZED (
            SELECT m.* FROM mastra_memory_message m WHERE m.id = ANY(%s)),
        near AS (SELECT h.id AS hit, n.* FROM h CROSS JOIN LATERAL ({neighbours}) n)
        SELECT h.id, h.thread_id, h.resource_id, h.role, left(h.text, {MAX_TEXT_CHARACTERS}),
            {sql.in_utc("h.created_at")},
            coalesce(nullif(t.title, ''), t.id),
            n.earlier, n.id, n.role, n.text, {sql.in_utc("n.created_at")}
        FROM h JOIN mastra_memory_thread t ON t.id = h.thread_id LEFT JOIN near n ON n.hit = h.id
        ORDER BY h.id, n.created_at, n.sequence""",
        [list(message_ids), before, after],
    )


def sample_terms(
    terms: Sequence[str], where: sql.Where, *, points: int, per_point: int, max_counted: int
) -> sql.SqlRow:
    """Return the number of messages `m`, the size of the sample, and each term's count in it.

    The sample is read at `points` evenly spaced times, with the index on the time.
    """
    containing = ", ".join("count(*) FILTER (WHERE words @@ %s::tsquery)" for _ in terms)
    found = sql.fetch_one(
        f"""WITH span AS MATERIALIZED (
            SELECT min(m.created_at) AS first, max(m.created_at) AS last
            FROM mastra_memory_message m WHERE {where}),
        sample AS MATERIALIZED (
            SELECT DISTINCT ON (s.sequence) s.search AS words
            FROM span CROSS JOIN generate_series(0, {points - 1}) AS point
            CROSS JOIN LATERAL (SELECT m.sequence, m.search FROM mastra_memory_message m
                WHERE {where} AND m.created_at >=
                    span.first + (span.last - span.first) * (point::float8 / {points})
                ORDER BY m.created_at LIMIT {per_point}) AS s)
        SELECT (SELECT count(*) FROM (
            SELECT 1 FROM mastra_memory_message m WHERE {where} LIMIT {max_counted}) AS m),
            count(*), {containing} FROM sample""",
        [*where.params, *where.params, *where.params, *terms],
    )
    assert found is not None
    return found


# BM25. Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
# https://doi.org/10.1561/1500000019. The score of a message is the sum over the query's terms of
#
#     idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average length))
#     idf = ln(1 + (N - df + 0.5) / (df + 0.5))
#
# where tf is how often the term occurs in the message, df in how many messages it occurs and N how
# many messages the scope has. The idf has the "1 +" of Lucene, which keeps it positive for words
# in more than half of the messages. Lucene leaves out the constant factor k1 + 1, which changes no
# order. Its k1 is 1.2 and its b 0.75; messages of conversations are short and differ less in length
# than documents do, so a smaller b finds more (see docs/recall.md).
K1 = 1.0
"""How much further occurrences of a term in a message add to its score; 0 means nothing."""
B = 0.3
"""How much the length of a message reduces its score, from 0 (not at all) to 1 (fully)."""

MAX_SCOPE_SIZE = 50_000
"""The upper limit for N. The idf hardly changes in larger scopes."""
MAX_TITLES = 200
"""How many threads can be found by their titles."""
_TS_RANK_SINGLE_OCCURRENCE = 0.0607927
"""`ts_rank` of a word that occurs once: 0.1 * 6 / pi²."""
_RANK_WEIGHTS = "'{0.1, 0.04, 0.1, 0.1}'"
"""The weights D, C, B and A for `ts_rank`: those of the text, of tool errors, of nothing, and of
fields. A word of an error counts less than half of a word of the text."""
_MIN_FREQUENCY = 0.1
"""The computed frequency of a term that occurs at all: 0.19 if it occurs once, in an error."""
_TEXT_LENGTH = f"""(CASE WHEN words @@ '{HAS_FIELDS}'::tsquery
    THEN length(ts_filter(words, '{{c,d}}')) ELSE length(words) END)"""
"""SQL for the number of different words of a message. Those of its fields do not count. A message
with fields has the word that stands for this, so that the others need not be filtered."""

_COUNT_SCOPE = f"""(SELECT count(*) FROM (SELECT 1 FROM mastra_memory_message m
    WHERE {{messages}} AND m.created_at >= c.oldest LIMIT {MAX_SCOPE_SIZE}) m)"""


def rank_by_bm25(
    plan: TermPlan, scope: SearchScope, matching: sql.Where, limit: int
) -> list[ScoredMessage]:
    """Select and rank candidates, best first, in one statement.

    Ranking in Python would need the words of all candidates, and sending them would take longer
    than the ranking. The steps are: `found` has the candidates; `named` has the threads whose
    titles match; `ranked` adds the newest message of each of these; `counted` has the average
    length and the df of each term; `scope` has the idf of each term.

    `matching` is a condition on messages `m`.
    """
    query = plan.query
    messages, threads = scope.condition("m"), scope.thread_condition("t")
    indexes = range(len(query.terms))
    # A thread that is found by its title is represented by its newest message, which must not
    # contain an excluded word. The words of that message may not be indexed yet.
    newest = f"""SELECT m.id, m.thread_id, m.created_at, m.sequence,
            coalesce(m.search, ''::tsvector) AS words
        FROM mastra_memory_message m
        WHERE m.thread_id = n.id AND {VISIBLE} AND {matching}
            AND {_exclude_terms("m.search", query.excluded)}
        ORDER BY m.created_at DESC, m.sequence DESC LIMIT 1"""
    frequencies = f"""id, thread_id, created_at, sequence, {_TEXT_LENGTH}::float8 AS size,
        {", ".join(_term_frequency_sql(term, index) for index, term in enumerate(query.terms))}"""
    order = "m.created_at"
    if plan.preferred:
        # Sort preferred messages first, then by time. PostgreSQL sorts by one number several times
        # faster than by two columns. 1e12 seconds is later than any date that it can store.
        order = "date_part('epoch', m.created_at) + (m.search @@ %s::tsquery)::int * 1e12"
    total, total_params = "%s", [plan.messages]
    if plan.messages is None:
        total, total_params = _COUNT_SCOPE.format(messages=messages), messages.params
    statement = f"""
        WITH found AS MATERIALIZED (
            SELECT {frequencies} FROM (
                SELECT m.id, m.thread_id, m.created_at, m.sequence, m.search AS words
                FROM mastra_memory_message m
                WHERE {messages} AND {VISIBLE} AND {matching} AND m.search @@ %s::tsquery
                ORDER BY {order} DESC, m.sequence DESC LIMIT {plan.max_candidates}) m),
        named AS MATERIALIZED (
            SELECT id, {", ".join(f"words @@ %s::tsquery AS t{i}" for i in indexes)} FROM (
                SELECT t.id, t.title_search AS words FROM mastra_memory_thread t
                WHERE {threads} AND t.title_search @@ %s::tsquery
                ORDER BY t.updated_at DESC LIMIT {MAX_TITLES}) t),
        ranked AS MATERIALIZED (
            SELECT * FROM found UNION ALL
            SELECT {frequencies} FROM (SELECT top.* FROM named n CROSS JOIN LATERAL ({newest}) top
                WHERE top.id NOT IN (SELECT id FROM found)) f),
        counted AS MATERIALIZED (
            SELECT greatest(avg(size), 1) AS size, count(*) AS found,
                CASE WHEN count(*) < {plan.max_candidates} THEN '-infinity' ELSE min(created_at) END
                    AS oldest,
                {", ".join(map(_document_frequency_sql, indexes))}
            FROM ranked),
        sized AS MATERIALIZED (
            SELECT c.*, greatest(c.found, {total})::float8 AS total FROM counted c),
        scope AS MATERIALIZED (SELECT size, {", ".join(map(_idf_sql, indexes))} FROM sized)
        SELECT w.id, date_part('epoch', w.created_at), w.sequence,
            ({" + ".join(map(_bm25_sql, indexes))})::float8 AS score
        FROM scope s CROSS JOIN LATERAL (
            SELECT r.*, {K1}::float8 * ({1 - B} + {B}::float8 * r.size / s.size) AS length
            FROM ranked r OFFSET 0) w
        LEFT JOIN named n ON n.id = w.thread_id
        ORDER BY score DESC, w.created_at DESC, w.sequence DESC LIMIT %s"""
    params: list[Any] = [
        *query.terms,
        *messages.params,
        *matching.params,
        plan.filter,
        *filter(None, [plan.preferred]),
        *query.terms,
        *threads.params,
        query.filter,
        *query.terms,
        *matching.params,
        *query.excluded,
        *plan.min_document_frequencies,
        *total_params,
        limit,
    ]
    return [ScoredMessage(*row) for row in sql.fetch_all(statement, params)]


def _exclude_terms(column: str, excluded: Sequence[str]) -> str:
    return " AND ".join(f"NOT {column} @@ %s::tsquery" for _ in excluded) or "TRUE"


def _term_frequency_sql(term: str, index: int) -> str:
    """Return SQL for the number of occurrences of a term in `words`. A phrase counts once.

    No function of PostgreSQL returns how often a tsvector contains a word, so it is computed from
    `ts_rank`. For one word that is 0.1 * 6 / pi² times the sum of 1/i² for i up to the count n
    (`calc_rank_or` in tsrank.c). The infinite sum is pi²/6 = 1.644934, and the rest after n is
    nearly 1 / (n + 0.5), which is solved for n. The last term makes the result 0 for a word that
    does not occur.
    """
    rank = f"ts_rank({_RANK_WEIGHTS}, words, %s::tsquery)"
    if is_phrase(term):
        rank = f"(words @@ %s::tsquery)::int * {_TS_RANK_SINGLE_OCCURRENCE}"
    rest = f"greatest(1.644934::float8 - 16.44934::float8 * {rank}, 0.001)"
    return f"1 / {rest} - 1 / 1.644934::float8 AS tf{index}"


def _document_frequency_sql(index: int) -> str:
    """Return SQL for the df: the count among the candidates, but at least the estimate."""
    return (
        f"greatest(count(*) FILTER (WHERE tf{index} > {_MIN_FREQUENCY}), %s)::float8 AS df{index}"
    )


def _idf_sql(index: int) -> str:
    return f"ln(1 + (total - df{index} + 0.5) / (df{index} + 0.5)) AS idf{index}"


def _bm25_sql(index: int) -> str:
    """Return SQL for the score of one term. A match in the thread's title adds the idf again."""
    score = f"w.tf{index} * {K1 + 1}::float8 / (w.tf{index} + w.length)"
    return f"s.idf{index} * ({score} + CASE WHEN n.t{index} THEN 1 ELSE 0 END)"


def is_hnsw_scan_cheaper(
    index: VectorIndex,
    where: sql.Where,
    *,
    min_vectors: int,
    exact_limit: int,
    lookup_cost: float,
) -> bool:
    """Return whether the index is complete and its scan is cheaper than comparing all vectors `e`.

    See `vector.is_index_cheaper` for the cost model. One statement reads the size of the index from
    the statistics, computes the smallest scope in which the scan is cheaper, and counts the vectors
    of the scope up to that number.
    """
    found = sql.fetch_one(
        f"""SELECT index.size IS NOT NULL AND index.enough <= CASE
            WHEN %s >= index.enough THEN %s ELSE (SELECT count(*) FROM (SELECT 1 FROM {TABLE} e
                WHERE {index.condition} AND {where} LIMIT index.enough) AS e) END
        FROM (SELECT size, CASE WHEN size IS NULL THEN 1 ELSE 1 + floor(greatest(
                (%s + sqrt(%s + 4 * %s * size)) / 2, %s)) END::bigint AS enough
            FROM (SELECT (SELECT greatest(c.reltuples, 0)::float8 FROM pg_class c
                JOIN pg_index i ON i.indexrelid = c.oid
                WHERE c.oid = to_regclass(%s) AND i.indisvalid) AS size) AS known) AS index""",
        [
            *(min_vectors, min_vectors, *where.params),
            *(exact_limit, exact_limit**2, lookup_cost, exact_limit + lookup_cost, index.name),
        ],
    )
    return bool(found and found[0])


def find_other_dimensions(index: VectorIndex, where: sql.Where) -> int | None:
    """Return the length of a vector `e` of the model that does not fit the index, or None."""
    found = sql.fetch_one(
        f"""SELECT dimensions FROM {TABLE} e
        WHERE model = %s AND dimensions <> %s AND {where} LIMIT 1""",
        [index.model, index.dimensions, *where.params],
    )
    return None if found is None else found[0]


def list_nearest(
    index: VectorIndex, vector: Vector, where: sql.Where, *, limit: int, exact: bool
) -> list[ScoredMessage]:
    """Return the messages of the `limit` passages `e` nearest to a vector, in no order.

    A message is returned once for each of its passages. This is SQL because PostgreSQL uses the
    index only if the inner query has exactly the same expression.
    """
    rows = sql.fetch_all(
        f"""SELECT {SCORED_COLUMNS}, {index.similarity("n.distance")}
        FROM (SELECT e.message_id, {index.distance("e", exact=exact)} AS distance
            FROM {TABLE} e WHERE {index.condition} AND {where}
            ORDER BY distance LIMIT %s) AS n
        JOIN mastra_memory_message m ON m.id = n.message_id
        WHERE n.distance <> 'NaN'""",
        [embedder.format_vector(vector), *where.params, limit],
    )
    return [ScoredMessage(*row) for row in rows]
