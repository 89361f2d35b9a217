"""Find the messages whose vectors are most similar to the vector of the query.

In a small scope, all vectors are compared, which is exact. In a large scope, the HNSW index is
scanned, which is approximate. `is_index_cheaper` decides which one to use. If the scan finds too
few messages, all vectors of the scope are compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mastra_memory import conf
from mastra_memory.db import routing, sql
from mastra_memory.embedding.embedder import Vector
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.exceptions import EmbedderMismatch
from mastra_memory.search import metadata_filters, queries
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.times import boost
from mastra_memory.search.types import ScoredMessage
from mastra_memory.types import TimeRange

EF_SEARCH = 100
"""pgvector's `hnsw.ef_search`, the number of candidates of a scan. More is more exact but slower.

pgvector's default is 40. If one vector in 200 is in the scope, a scan with 100 finds 0.99 of the
matches that an exact search finds; see docs/recall.md.
"""
MAX_SCAN_TUPLES = 40_000
"""pgvector's `hnsw.max_scan_tuples`: after how many rows an iterative scan stops."""
EXTRA_PASSAGES = 16
"""How many more passages than messages are read, because a message may have several."""
MAX_MESSAGES_IN_RANGES = 5_000
"""How many messages of a time that the query names are compared."""
INDEX_LOOKUP_COST = 11
"""The measured cost of reading one vector through the index, in exact comparisons. Starting a scan
costs about as much as `EXACT_SEARCH_LIMIT` comparisons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorQuery:
    """What to search for, and where."""

    model: str
    """The embedder of the vectors, as `provider/model`."""
    vectors: Sequence[Vector]
    """One vector for each passage of the query; usually there is one."""
    scope: SearchScope
    filter: Mapping[str, Any] | None = None
    """Mastra's metadata filter; see `metadata_filters`."""
    threshold: float | None = None
    """The lowest similarity that counts as a match."""
    min_vectors: int = 0
    """A lower bound of the number of vectors in the scope, if known, to avoid counting them."""
    ranges: Sequence[TimeRange] = ()
    """Only messages of these times. Of many messages, the newest are compared."""


def find_by_similarity(
    query: VectorQuery, *, limit: int, use_index: bool | None = None
) -> list[ScoredMessage]:
    """Return the messages with the most similar passages, each once, best first.

    Args:
        query: What to search for.
        limit: How many messages to return.
        use_index: Scan the index, or compare everything; None lets `is_index_cheaper` decide.

    Raises:
        EmbedderMismatch: The scope has vectors of the model, but of another length.
        InvalidInput: The filter is invalid.
    """
    if limit <= 0:
        return []
    matches = [
        match
        for vector in query.vectors
        for match in _find_nearest(query, vector, limit, use_index)
        if query.threshold is None or match.score >= query.threshold
    ]
    return _sort_unique(matches)[:limit]


def _sort_unique(matches: Iterable[ScoredMessage]) -> list[ScoredMessage]:
    """Return each message once, with the best of its scores, best first."""
    unique: dict[str, ScoredMessage] = {}
    for match in sorted(matches, key=lambda match: match.rank, reverse=True):
        unique.setdefault(match.id, match)
    return list(unique.values())


def _find_nearest(
    query: VectorQuery, vector: Vector, limit: int, use_index: bool | None
) -> list[ScoredMessage]:
    index = VectorIndex.for_model(query.model, len(vector))
    rows = limit + max(4, limit // 2)
    if use_index is None:
        use_index = is_index_cheaper(index, query, rows)
    if use_index:
        matches = _scan_index(index, query, vector, limit, rows)
        if len(matches) == limit:
            return matches
    return _compare_all(index, query, vector, limit)


def is_index_cheaper(index: VectorIndex, query: VectorQuery, rows: int) -> bool:
    """Return whether scanning the index for `rows` passages costs less than comparing the scope.

    The unit of cost is one exact comparison of two vectors. If `s` of the `n` vectors of the index
    are in the scope, comparing all of them costs `s`. The scan also reads vectors outside of the
    scope: to find `rows` passages it reads `rows * n / s` vectors. So it is cheaper if

        EXACT_SEARCH_LIMIT + INDEX_LOOKUP_COST * rows * n / s < s
    """
    return queries.is_hnsw_scan_cheaper(
        index,
        query.scope.condition("e"),
        min_vectors=query.min_vectors,
        exact_limit=conf.app_settings().EXACT_SEARCH_LIMIT,
        lookup_cost=INDEX_LOOKUP_COST * rows,
    )


def _compare_all(
    index: VectorIndex, query: VectorQuery, vector: Vector, limit: int
) -> list[ScoredMessage]:
    """Compare all vectors of the scope."""
    where = _add_filter(query, query.scope.condition("e"))
    rows = limit + EXTRA_PASSAGES
    while True:
        passages = queries.list_nearest(index, vector, where, limit=rows, exact=True)
        matches = _sort_unique(passages)
        if not matches and not query.ranges:
            _check_dimensions(index, query)
        if len(passages) < rows or len(matches) >= limit:
            return matches[:limit]
        rows *= 8  # Too many of the passages belong to the same long messages.


def _scan_index(
    index: VectorIndex, query: VectorQuery, vector: Vector, limit: int, rows: int
) -> list[ScoredMessage]:
    """Scan the index. This may find fewer messages than there are."""
    where = _add_filter(query, query.scope.condition("e", use_index=False))
    with _force_index_scan():
        passages = queries.list_nearest(index, vector, where, limit=rows, exact=False)
        matches = _sort_unique(passages)
        if len(matches) < limit and len(passages) == rows:
            rows += 8 * EXTRA_PASSAGES
            passages = queries.list_nearest(index, vector, where, limit=rows, exact=False)
            matches = _sort_unique(passages)
    return matches[:limit]


def _add_filter(query: VectorQuery, where: sql.Where) -> sql.Where:
    """Add the metadata filter and the ranges of time to a condition on vectors `e`."""
    matching = metadata_filters.build_vector_condition(query.filter)
    where.add(str(matching), *matching.params)
    if query.ranges:
        times, scope = boost.build_condition(query.ranges), query.scope.condition("m")
        where.add(
            # A fragment of a statement; the values of the conditions are parameters.
            f"""e.message_id = ANY (ARRAY(SELECT m.id FROM mastra_memory_message m
            WHERE {scope} AND {times} ORDER BY m.created_at DESC
            LIMIT {MAX_MESSAGES_IN_RANGES}))""",  # noqa: S608
            *scope.params,
            *times.params,
        )
    return where


def _check_dimensions(index: VectorIndex, query: VectorQuery) -> None:
    stored = queries.find_other_dimensions(index, query.scope.condition("e"))
    if stored is not None:
        raise EmbedderMismatch(index.model, stored=stored, made=index.dimensions)


_DISABLED_PLAN_TYPES = ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin")


@contextmanager
def _force_index_scan() -> Iterator[None]:
    """Force PostgreSQL to scan the HNSW index, and set pgvector's options for it.

    The planner does not know how many vectors of the index are in the scope, or how long it takes
    to compute a distance. So it often chooses to sort all vectors. The settings are local to a
    transaction. If the caller has a transaction, the previous values are restored afterwards.
    """
    is_nested = routing.get_connection().in_atomic_block
    plans = {f"enable_{plan}": "off" for plan in _DISABLED_PLAN_TYPES}
    scan = {
        # Continue the scan until enough rows of the scope are found. Otherwise pgvector returns
        # only those among the first `ef_search` candidates. The relaxed order is faster than the
        # strict order, and sufficient because the result is sorted again.
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": str(EF_SEARCH),
        "hnsw.max_scan_tuples": str(MAX_SCAN_TUPLES),
    }
    with routing.atomic():
        before = _read_settings(plans) if is_nested else {}
        _set_local_settings({**plans, **scan})
        yield
        if is_nested:
            _set_local_settings(before)


def _read_settings(names: Iterable[str]) -> dict[str, str]:
    return dict(
        sql.fetch_all(
            "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name", [list(names)]
        )
    )


def _set_local_settings(settings: Mapping[str, str]) -> None:
    sql.fetch_all(
        """SELECT set_config(name, value, TRUE)
        FROM unnest(%s::text[], %s::text[]) AS s (name, value)""",
        [list(settings), list(settings.values())],
    )
