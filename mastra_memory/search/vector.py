"""Messages by their meaning: the vectors nearest to that of the query.

A scope with few vectors is compared whole, which is exact. A large one is asked through the HNSW
index, whose scan goes on until enough of what it finds is in the scope; where it finds too little,
the whole is compared after all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mastra_memory import conf
from mastra_memory.db import routing, sql
from mastra_memory.embedding import embedder
from mastra_memory.embedding.embedder import Vector
from mastra_memory.embedding.vector_index import TABLE, VectorIndex
from mastra_memory.exceptions import EmbedderMismatch
from mastra_memory.search import metadata_filters, types
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.types import ScoredMessage

EF_SEARCH = 100
"""How far the index looks around at each step; more is more exact and slower."""
EXTRA_PASSAGES = 16
"""How many passages more than messages are read first, since one message may have several."""
MAX_SCAN_TUPLES = 40_000
"""Where a scan of the index gives up looking for more that is in the scope."""
INDEX_LOOKUP_COST = 11
"""What looking at one vector through the index costs, in comparisons of a vector one by one; to
begin with a scan costs about as much as `EXACT_SEARCH_LIMIT` comparisons. As measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorQuery:
    """What is searched for, and where."""

    model: str
    vectors: Sequence[Vector]
    """Of the passages of the query: usually one."""
    scope: SearchScope
    filter: Mapping[str, Any] | None = None
    """See `filters`."""
    threshold: float | None = None
    """The least similarity that counts."""
    messages: int = 0
    """How many are in the scope at least, for all that is known; about as many as vectors."""


def find_by_similarity(
    wanted: VectorQuery, *, limit: int, use_index: bool | None = None
) -> list[ScoredMessage]:
    """The messages with the most similar passages, each once, best first.

    `use_index` overrides the choice between the index and comparing everything. Raises
    `EmbedderMismatch` where the scope has only vectors of another length.
    """
    best: dict[str, ScoredMessage] = {}
    for vector in wanted.vectors if limit > 0 else ():
        for one in _find_nearest(wanted, vector, limit, use_index):
            known = best.get(one.id)
            if known is None or known.score < one.score:
                best[one.id] = one
    return sorted(best.values(), key=ScoredMessage.rank, reverse=True)[:limit]


def _find_nearest(
    wanted: VectorQuery, vector: Vector, limit: int, use_index: bool | None
) -> list[ScoredMessage]:
    index = VectorIndex.for_model(wanted.model, len(vector))
    rows = limit + max(4, limit // 2)
    if use_index is None:
        use_index = _is_index_cheaper(index, wanted, rows)
    if use_index:
        found = _scan_index(index, wanted, vector, limit, rows)
        if len(found) == limit:
            return _drop_below_threshold(found, wanted.threshold)
    return _drop_below_threshold(_compare_all(index, wanted, vector, limit), wanted.threshold)


def _drop_below_threshold(
    found: Sequence[ScoredMessage], least: float | None
) -> list[ScoredMessage]:
    return [one for one in found if least is None or one.score >= least]


def _is_index_cheaper(index: VectorIndex, wanted: VectorQuery, rows: int) -> bool:
    """Whether asking the index for so many rows is quicker than comparing the whole scope.

    The rarer the scope is in the index, the more of the index is looked through in vain: with
    `s` of the `n` vectors in the scope it pays where `limit + looks * n / s < s`. So the scope is
    counted up to where that is sure, and no further.
    """
    limit = conf.app_settings().EXACT_SEARCH_LIMIT
    where = wanted.scope.condition("e")
    looks = INDEX_LOOKUP_COST * rows
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
            *(wanted.messages, wanted.messages, *where.params),
            *(limit, limit * limit, looks, limit + looks, index.name),
        ],
    )
    return bool(found and found[0])


def _check_dimensions(index: VectorIndex, where: sql.Where) -> None:
    other = sql.fetch_one(
        f"""SELECT dimensions FROM {TABLE} e
        WHERE model = %s AND dimensions <> %s AND {where} LIMIT 1""",
        [index.model, index.dimensions, *where.params],
    )
    if other is not None:
        raise EmbedderMismatch(index.model, stored=other[0], made=index.dimensions)


def _compare_all(
    index: VectorIndex, wanted: VectorQuery, vector: Vector, limit: int
) -> list[ScoredMessage]:
    """Compare all vectors of the scope."""
    where = wanted.scope.condition("e")
    rows = limit + EXTRA_PASSAGES
    while True:
        found, exhausted = _call_embedder(index, wanted, vector, where, rows, exact=True)
        if not found:
            _check_dimensions(index, where)
        if exhausted or len(found) >= limit:
            return found[:limit]
        rows *= 8


def _scan_index(
    index: VectorIndex, wanted: VectorQuery, vector: Vector, limit: int, rows: int
) -> list[ScoredMessage]:
    """Ask the index; it may find fewer than there are."""
    where = wanted.scope.condition("e", by_index=False)
    with _force_index_scan():
        found, exhausted = _call_embedder(index, wanted, vector, where, rows, exact=False)
        if len(found) < limit and not exhausted:
            found, _ = _call_embedder(
                index, wanted, vector, where, rows + 8 * EXTRA_PASSAGES, exact=False
            )
    return found[:limit]


_OTHER_PLANS = ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin")


@contextmanager
def _force_index_scan() -> Iterator[None]:
    """Settings for one scan, gone afterwards, also inside a transaction of the caller's."""
    nested = routing.get_connection().in_atomic_block
    others = {f"enable_{plan}": "off" for plan in _OTHER_PLANS}
    scan = {
        "hnsw.iterative_scan": "relaxed_order",  # what is found is sorted again
        "hnsw.ef_search": str(EF_SEARCH),
        "hnsw.max_scan_tuples": str(MAX_SCAN_TUPLES),
    }
    with routing.atomic():
        before = _read_settings(others) if nested else {}
        _set_local_settings({**others, **scan})
        yield
        if nested:
            _set_local_settings(before)


def _read_settings(names: Iterable[str]) -> dict[str, str]:
    asked = ", ".join(f"current_setting('{name}')" for name in names)
    return dict(zip(names, sql.fetch_one(f"SELECT {asked}") or (), strict=True))


def _set_local_settings(chosen: Mapping[str, str]) -> None:
    asked = ", ".join("set_config(%s, %s, TRUE)" for _ in chosen)
    sql.fetch_one(f"SELECT {asked}", [part for setting in chosen.items() for part in setting])


def _call_embedder(
    index: VectorIndex,
    wanted: VectorQuery,
    vector: Vector,
    where: sql.Where,
    rows: int,
    *,
    exact: bool,
) -> tuple[list[ScoredMessage], bool]:
    """The nearest passages as messages, and whether there are no more of them."""
    matching, params = "", []
    if wanted.filter:
        chosen = metadata_filters.build_condition(wanted.filter)
        matching = f"""AND EXISTS (SELECT 1 FROM mastra_memory_message m
            JOIN mastra_memory_thread t ON t.id = m.thread_id
            WHERE m.id = e.message_id AND {chosen})"""
        params = chosen.params
    found = sql.fetch_all(
        f"""SELECT {types.SCORED_COLUMNS}, {index.similarity("n.distance")}
        FROM (SELECT e.message_id, {index.distance("e", exact=exact)} AS distance
            FROM {TABLE} e WHERE {index.condition} AND {where} {matching}
            ORDER BY distance LIMIT %s) AS n
        JOIN mastra_memory_message m ON m.id = n.message_id
        WHERE n.distance <> 'NaN'""",
        [embedder.format_vector(vector), *where.params, *params, rows],
    )
    best_first = sorted(
        (ScoredMessage(*cells) for cells in found), key=ScoredMessage.rank, reverse=True
    )
    unique: dict[str, ScoredMessage] = {}
    for one in best_first:
        unique.setdefault(one.id, one)
    return list(unique.values()), len(found) < rows
