"""Start here: a search by words, by meaning, or by both, best results first."""

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mastra_memory import conf
from mastra_memory.db import json_text, sql
from mastra_memory.embedding import embedder, indexing, passages
from mastra_memory.embedding.embedder import Embeddings
from mastra_memory.exceptions import EmbedderMismatch, ProviderRefused, ProviderUnavailable
from mastra_memory.llm import usage
from mastra_memory.models import ModelUsage
from mastra_memory.search import (
    bm25,
    fusion,
    metadata_filters,
    query,
    term_statistics,
    tsvector,
    vector,
)
from mastra_memory.search.query import WordQuery
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.term_statistics import TermStatistics
from mastra_memory.search.types import ScoredMessage
from mastra_memory.search.vector import VectorQuery

logger = logging.getLogger(__name__)

SearchType = Literal["text", "semantic", "hybrid"]

MAX_CATCH_UP_MESSAGES = 32
CATCH_UP_TIMEOUT_SECONDS = 0.2
"""What a read embeds at most of what was saved just now, so that it finds it."""
MAX_QUERY_PASSAGES = 4
"""A query longer than so many passages is searched for by its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is looked for, and where."""

    query: str
    scope: SearchScope
    filter: Mapping[str, Any] | None = None
    """Only messages whose thread's metadata fits; see `filters`."""
    threshold: float | None = None
    """The least similarity that counts as a match by meaning."""
    catch_up: bool = True
    """Whether to embed and to index first what the scope still waits for."""
    parse_operators: bool = True
    """Whether "phrases" and -words are demands, or what somebody just wrote."""


@dataclass(frozen=True, slots=True)
class Matches:
    """What was found, best first."""

    scored: list[ScoredMessage]
    words: WordQuery | None
    """The words that were looked for; None when it was by meaning alone."""
    usage_tokens: int = 0


def find_matches(search: SearchRequest, kind: SearchType, *, limit: int) -> Matches:
    """The best messages.

    By words: those that hold any of the words, every "phrase" and no -word. By meaning: those
    with the nearest vectors. By meaning alone raises `ProviderUnavailable`, `ProviderRefused` and
    `EmbedderMismatch`; a search for both goes on with the words then.
    """
    vectors_pending = search.catch_up and _catch_up(search, kind)
    if kind == "semantic":
        near, tokens = _find_by_similarity(search, limit, vectors_pending=vectors_pending)
        return Matches(near, None, tokens)
    words = query.parse_query(search.query, parse_operators=search.parse_operators)
    if kind == "text":
        return Matches(_find_by_words(search, words, limit), words)
    scored, tokens = _find_hybrid(search, words, limit, vectors_pending=vectors_pending)
    return Matches(scored, words, tokens)


def _find_hybrid(
    search: SearchRequest, words: WordQuery, limit: int, *, vectors_pending: bool
) -> tuple[list[ScoredMessage], int]:
    if limit <= 0:
        return [], 0
    is_named = search.scope.is_named
    known = (
        term_statistics.estimate_term_statistics(words.terms, search.scope)
        if is_named and words.terms
        else None
    )
    try:
        near, tokens = _find_by_similarity(
            search, max(limit, fusion.VECTOR_CANDIDATES), known, vectors_pending=vectors_pending
        )
    except (ProviderUnavailable, ProviderRefused, EmbedderMismatch) as error:
        logger.warning("Only words are searched for (%s)", type(error).__name__)
        near, tokens = [], 0
    said = _find_by_words(search, words, max(limit, fusion.WORD_CANDIDATES), known)
    if not (search.filter or words.demand):
        return fusion.fuse_scores(said, near, limit=limit), tokens
    fused = fusion.fuse_scores(said, near, limit=sys.maxsize)
    allowed = {scored.id for scored in said} | _find_allowed_ids(search, words, fused)
    return [scored for scored in fused if scored.id in allowed][:limit], tokens


def _find_allowed_ids(
    search: SearchRequest, words: WordQuery, found: Sequence[ScoredMessage]
) -> set[str]:
    """Which of what was found by meaning, or beside it, fits the filter and the demands."""
    where = metadata_filters.build_message_condition(search.filter)
    where.add("m.id = ANY(%s)", [scored.id for scored in found])
    if words.demand:
        where.add("m.search @@ %s::tsquery", words.demand)
    kept = sql.fetch_all(f"SELECT m.id FROM mastra_memory_message m WHERE {where}", where.params)
    return {message_id for (message_id,) in kept}


def _find_by_words(
    search: SearchRequest, words: WordQuery, limit: int, known: TermStatistics | None = None
) -> list[ScoredMessage]:
    return bm25.find_by_words(words, search.scope, limit=limit, matching=search.filter, known=known)


def _find_by_similarity(
    search: SearchRequest, limit: int, known: TermStatistics | None = None, *, vectors_pending: bool
) -> tuple[list[ScoredMessage], int]:
    model = conf.app_settings().EMBEDDER
    asked = json_text.clean_text(search.query)
    cut = passages.split_into_passages(asked, embedder.get_embedder(model).passage_bytes)[
        :MAX_QUERY_PASSAGES
    ]
    if not cut:
        return [], 0
    if vectors_pending:
        requests = search.scope.condition("r")
        indexing.embed_batch(
            model, limit=MAX_CATCH_UP_MESSAGES, scope=requests, timeout=CATCH_UP_TIMEOUT_SECONDS
        )
    made = embedder.embed_query(model, cut)
    _record_usage(model, made, search)
    wanted = VectorQuery(
        model=model,
        vectors=made.vectors,
        scope=search.scope,
        filter=search.filter,
        threshold=search.threshold,
        messages=known.messages if known else 0,
    )
    return vector.find_by_similarity(wanted, limit=limit), made.tokens


def _catch_up(search: SearchRequest, kind: SearchType) -> bool:
    """Index what was saved just now, and tell whether vectors are waited for; one statement."""
    requests, messages = search.scope.condition("r"), search.scope.condition("m")
    waiting = sql.fetch_one(
        f"""SELECT EXISTS (SELECT FROM mastra_memory_message m
                WHERE m.search IS NULL AND {messages}),
            EXISTS (SELECT FROM mastra_memory_embeddingrequest r
                WHERE {requests} AND r.model = %s AND r.error = '' AND r.failed_at IS NULL)""",
        [*messages.params, *requests.params, conf.app_settings().EMBEDDER],
    )
    assert waiting is not None
    if waiting[0] and kind != "semantic":
        tsvector.index_pending_words(messages)
    return bool(waiting[1] and search.scope.is_named)


def _record_usage(model: str, made: Embeddings, search: SearchRequest) -> None:
    if made.tokens and search.catch_up:
        usage.record_usage(
            ModelUsage.Purpose.EMBEDDING,
            model,
            input_tokens=made.tokens,
            thread_id=search.scope.thread_id,
            resource_id=search.scope.resource_id,
        )
