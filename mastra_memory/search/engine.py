"""Search by words, by vectors, or by both. Start reading the package here.

`find_matches` returns ids and scores; `hits.read_hits` reads the messages.
"""

import logging
import sys
from collections.abc import Sequence

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
from mastra_memory.search.types import Matches, ScoredMessage, SearchRequest, SearchType
from mastra_memory.search.vector import VectorQuery

logger = logging.getLogger(__name__)

MAX_CATCH_UP_MESSAGES = 32
"""How many recently saved messages are embedded before a search, so that they are found."""
CATCH_UP_TIMEOUT_SECONDS = 0.2
"""How long this may take. A worker embeds the remaining messages later."""
MAX_QUERY_PASSAGES = 4
"""How many passages of a query are embedded. Each passage needs a separate search."""


def find_matches(request: SearchRequest, search_type: SearchType, *, limit: int) -> Matches:
    """Return the best `limit` messages, best first.

    `text` finds messages that contain any of the words, every required phrase and no excluded
    word. `semantic` finds those with the most similar vectors. `hybrid` combines both, and falls
    back to the words if the query cannot be embedded.

    Raises:
        ProviderUnavailable: `semantic` only: the embedder does not respond; a retry may help.
        ProviderRefused: `semantic` only: the embedder rejects the query or cannot be loaded.
        EmbedderMismatch: `semantic` only: the stored vectors have another length.
        InvalidInput: The filter is invalid.
    """
    vectors_pending = request.catch_up and _index_pending(request, search_type)
    if search_type == "semantic":
        similar, tokens = _find_by_similarity(request, limit, vectors_pending=vectors_pending)
        return Matches(similar, usage_tokens=tokens)
    words = query.parse_query(request.query, parse_operators=request.parse_operators)
    if search_type == "text":
        return Matches(_find_by_words(request, words, limit), words)
    scored, tokens = _find_hybrid(request, words, limit, vectors_pending=vectors_pending)
    return Matches(scored, words, tokens)


def _find_hybrid(
    request: SearchRequest, words: WordQuery, limit: int, *, vectors_pending: bool
) -> tuple[list[ScoredMessage], int]:
    if limit <= 0:
        return [], 0
    statistics = None
    if request.scope.is_named and words.terms:
        statistics = term_statistics.estimate_term_statistics(words.terms, request.scope)
    try:
        by_vector, tokens = _find_by_similarity(
            request,
            max(limit, fusion.VECTOR_CANDIDATES),
            statistics,
            vectors_pending=vectors_pending,
        )
    except (ProviderUnavailable, ProviderRefused, EmbedderMismatch) as error:
        logger.warning("Hybrid search uses words only: %s", type(error).__name__)
        by_vector, tokens = [], 0
    by_words = _find_by_words(request, words, max(limit, fusion.WORD_CANDIDATES), statistics)
    if not (request.filter or words.required_filter):
        return fusion.fuse_scores(by_words, by_vector, limit=limit), tokens
    # Matches by vectors may lack a required phrase. `fuse_scores` adds neighbours of matches, which
    # may not match the filter.
    fused = fusion.fuse_scores(by_words, by_vector, limit=sys.maxsize)
    allowed = {message.id for message in by_words} | _find_allowed_ids(request, words, fused)
    return [message for message in fused if message.id in allowed][:limit], tokens


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
    request: SearchRequest, words: WordQuery, limit: int, statistics: TermStatistics | None = None
) -> list[ScoredMessage]:
    return bm25.find_by_words(
        words,
        request.scope,
        limit=limit,
        metadata_filter=request.filter,
        statistics=statistics,
    )


def _find_by_similarity(
    request: SearchRequest,
    limit: int,
    statistics: TermStatistics | None = None,
    *,
    vectors_pending: bool,
) -> tuple[list[ScoredMessage], int]:
    """Embed the query and return the nearest messages, and the tokens that this cost."""
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
    return vector.find_by_similarity(vector_query, limit=limit), embeddings.tokens


def _index_pending(request: SearchRequest, search_type: SearchType) -> bool:
    """Index the pending words of the scope, and return whether vectors are pending as well.

    Vectors are created only in the scope of a thread or a resource. A search over everything, in
    the admin, would otherwise wait until unrelated messages are embedded.
    """
    words_pending, vectors_pending = queries.find_pending(
        request.scope, conf.app_settings().EMBEDDER
    )
    if words_pending and search_type != "semantic":
        tsvector.index_pending_words(request.scope.condition("m"))
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
