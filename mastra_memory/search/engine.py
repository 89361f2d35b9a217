"""Search by words, by vectors, or by both. Start reading the package here.

`find_matches` returns ids and scores; `hits.read_hits` reads the messages.
"""

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace

from mastra_memory import conf
from mastra_memory.db import json_text
from mastra_memory.embedding import embedder, indexing, passages
from mastra_memory.embedding.embedder import Embeddings
from mastra_memory.exceptions import EmbedderMismatch, ProviderRefused, ProviderUnavailable
from mastra_memory.llm import usage
from mastra_memory.models import ModelUsage
from mastra_memory.search import (
    bm25,
    fusion,
    metadata_filters,
    queries,
    query,
    term_statistics,
    tsvector,
    vector,
)
from mastra_memory.search.query import WordQuery
from mastra_memory.search.term_statistics import TermStatistics
from mastra_memory.search.times import boost
from mastra_memory.search.types import Matches, ScoredMessage, SearchRequest, SearchType
from mastra_memory.search.vector import VectorQuery
from mastra_memory.types import TimeRange

logger = logging.getLogger(__name__)

MAX_CATCH_UP_MESSAGES = 32
"""How many recently saved messages are embedded before a search, so that they are found."""
CATCH_UP_TIMEOUT_SECONDS = 0.2
"""How long this may take. A worker embeds the remaining messages later."""
MAX_QUERY_PASSAGES = 4
"""How many passages of a query are embedded. Each passage needs a separate search."""
TIME_CANDIDATES = 50
"""If the query names a time, how many matches of that time are added to the best ones."""


def find_matches(request: SearchRequest, search_type: SearchType, *, limit: int) -> Matches:
    """Return the best `limit` messages, best first.

    `text` finds messages that contain any of the words, every required phrase and no excluded
    word. `semantic` finds those with the most similar vectors. `hybrid` combines both, and falls
    back to the words if the query cannot be embedded. Messages of a time that the query names, such
    as `last week`, are preferred.

    Raises:
        ProviderUnavailable: `semantic` only: the embedder does not respond; a retry may help.
        ProviderRefused: `semantic` only: the embedder rejects the query or cannot be loaded.
        EmbedderMismatch: `semantic` only: the stored vectors have another length.
        InvalidInput: The filter is invalid.
    """
    vectors_pending = request.catch_up and _index_pending(request, search_type)
    if search_type == "semantic":
        ranges = boost.interpret_time(request.query, request.time)
        similar, tokens = _find_by_similarity(
            request, limit, ranges=ranges, vectors_pending=vectors_pending
        )
        similar = boost.boost_matches(similar, ranges)[: max(limit, 0)]
        return Matches(similar, usage_tokens=tokens, interpreted_time=ranges)
    words = query.parse_query(request.query, parse_operators=request.parse_operators)
    request = _apply_message_filter(request, words)
    ranges = boost.interpret_time(words.text, request.time)
    if search_type == "text":
        scored = _find_by_words(request, words, limit, ranges=ranges)
        scored = boost.boost_matches(scored, ranges)[: max(limit, 0)]
        return Matches(scored, words, interpreted_time=ranges)
    scored, tokens = _find_hybrid(request, words, limit, ranges, vectors_pending=vectors_pending)
    return Matches(scored, words, tokens, ranges)


def _apply_message_filter(request: SearchRequest, words: WordQuery) -> SearchRequest:
    """Return the request with the conditions of the query on role and time.

    Only the text without operators is embedded; if there is none, the whole query is.
    """
    if not request.parse_operators:
        return request
    filters = [part for part in (request.filter, words.message_filter) if part]
    combined = {"$and": filters} if len(filters) > 1 else next(iter(filters), None)
    return replace(request, query=words.text or request.query, filter=combined)


def _find_hybrid(
    request: SearchRequest,
    words: WordQuery,
    limit: int,
    ranges: Sequence[TimeRange],
    *,
    vectors_pending: bool,
) -> tuple[list[ScoredMessage], int]:
    if limit <= 0:
        return [], 0
    statistics = _estimate_statistics(request, words)
    try:
        by_vector, tokens = _find_by_similarity(
            request,
            max(limit, fusion.VECTOR_CANDIDATES),
            statistics,
            ranges=ranges,
            vectors_pending=vectors_pending,
        )
    except (ProviderUnavailable, ProviderRefused, EmbedderMismatch) as error:
        logger.warning("Hybrid search uses words only: %s", type(error).__name__)
        by_vector, tokens = [], 0
    by_words = _find_by_words(
        request, words, max(limit, fusion.WORD_CANDIDATES), statistics, ranges=ranges
    )
    if not (request.filter or words.required_filter):
        return fusion.fuse_scores(by_words, by_vector, limit=limit, ranges=ranges), tokens
    # Matches by vectors may lack a required phrase. `fuse_scores` adds neighbours of matches, which
    # may not match the filter.
    fused = fusion.fuse_scores(by_words, by_vector, limit=sys.maxsize, ranges=ranges)
    allowed = {message.id for message in by_words} | _find_allowed_ids(request, words, fused)
    return [message for message in fused if message.id in allowed][:limit], tokens


def _estimate_statistics(request: SearchRequest, words: WordQuery) -> TermStatistics | None:
    if not (request.scope.is_named and words.terms):
        return None
    return term_statistics.estimate_term_statistics(words.terms, request.scope)


def _find_allowed_ids(
    request: SearchRequest, words: WordQuery, messages: Sequence[ScoredMessage]
) -> set[str]:
    """Return which of the messages match the filter, the required phrases and the exclusions."""
    where = metadata_filters.build_message_condition(request.filter)
    where.add("m.id = ANY(%s)", [message.id for message in messages])
    if words.required_filter:
        where.add("m.search @@ %s::tsquery", words.required_filter)
    return queries.list_ids(where)


def _find_by_words(
    request: SearchRequest,
    words: WordQuery,
    limit: int,
    statistics: TermStatistics | None = None,
    *,
    ranges: Sequence[TimeRange],
) -> list[ScoredMessage]:
    """Return the best messages, and the best ones of the ranges of time."""
    if words.filter is None and words.message_filter:
        matching = metadata_filters.build_message_condition(request.filter)
        if words.required_filter:
            matching.add("m.search @@ %s::tsquery", words.required_filter)
        return queries.list_newest(request.scope, matching, limit)
    if not ranges or limit <= 0:
        return bm25.find_by_words(
            words,
            request.scope,
            limit=limit,
            metadata_filter=request.filter,
            statistics=statistics,
        )
    statistics = statistics or _estimate_statistics(request, words)
    found: dict[str, ScoredMessage] = {}
    no_ranges: Sequence[TimeRange] = ()
    for size, times in ((max(limit, TIME_CANDIDATES), no_ranges), (TIME_CANDIDATES, ranges)):
        for match in bm25.find_by_words(
            words,
            request.scope,
            limit=size,
            metadata_filter=request.filter,
            statistics=statistics,
            ranges=times,
        ):
            found.setdefault(match.id, match)
    return list(found.values())


def _find_by_similarity(
    request: SearchRequest,
    limit: int,
    statistics: TermStatistics | None = None,
    *,
    ranges: Sequence[TimeRange],
    vectors_pending: bool,
) -> tuple[list[ScoredMessage], int]:
    """Embed the query and return the nearest messages, and the tokens that this cost.

    The nearest messages of the ranges of time are added.
    """
    model = conf.app_settings().EMBEDDER
    texts = passages.split_into_passages(
        json_text.clean_text(request.query), embedder.get_embedder(model).passage_bytes
    )[:MAX_QUERY_PASSAGES]
    if not texts:
        return [], 0
    if vectors_pending:
        indexing.embed_batch(
            model,
            limit=MAX_CATCH_UP_MESSAGES,
            scope=request.scope.condition("r"),
            timeout=CATCH_UP_TIMEOUT_SECONDS,
        )
    embeddings = embedder.embed_query(model, texts)
    _record_usage(model, embeddings, request)
    vector_query = VectorQuery(
        model=model,
        vectors=embeddings.vectors,
        scope=request.scope,
        filter=request.filter,
        threshold=request.threshold,
        min_vectors=statistics.messages if statistics else 0,
    )
    if not ranges or limit <= 0:
        return vector.find_by_similarity(vector_query, limit=limit), embeddings.tokens
    nearest = vector.find_by_similarity(vector_query, limit=max(limit, TIME_CANDIDATES))
    in_ranges = vector.find_by_similarity(
        replace(vector_query, ranges=ranges), limit=TIME_CANDIDATES, use_index=False
    )
    unique = {match.id: match for match in (*in_ranges, *nearest)}
    return list(unique.values()), embeddings.tokens


def _index_pending(request: SearchRequest, search_type: SearchType) -> bool:
    """Index the pending words of the scope, and return whether vectors are pending as well.

    Vectors are created only in the scope of a thread or a resource. A search over everything, in
    the admin, would otherwise wait until unrelated messages are embedded.
    """
    words_pending, vectors_pending = queries.find_pending(
        request.scope, conf.app_settings().EMBEDDER
    )
    if words_pending and search_type != "semantic":
        tsvector.index_pending_words(request.scope)
    return vectors_pending and request.scope.is_named


def _record_usage(model: str, embeddings: Embeddings, request: SearchRequest) -> None:
    # A search that must not write (`catch_up` is False) records no usage either.
    if embeddings.tokens and request.catch_up:
        usage.record_usage(
            ModelUsage.Purpose.EMBEDDING,
            model,
            input_tokens=embeddings.tokens,
            thread_id=request.scope.thread_id,
            resource_id=request.scope.resource_id,
        )
