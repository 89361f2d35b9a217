"""Start here: a search by words, by meaning, or by both, best results first."""

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mastra_memory import conf
from mastra_memory.db import json_text, sql
from mastra_memory.embedding import embedder, indexing, passages
from mastra_memory.embedding.embedder import Embedded
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
from mastra_memory.search.term_statistics import Rarity
from mastra_memory.search.types import Scored
from mastra_memory.search.vector import Meaning

logger = logging.getLogger(__name__)

Kind = Literal["text", "semantic", "hybrid"]

CATCH_UP_MESSAGES = 32
CATCH_UP_SECONDS = 0.2
"""What a read embeds at most of what was saved just now, so that it finds it."""
QUERY_PASSAGES = 4
"""A query longer than so many passages is searched for by its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for, and where."""

    query: str
    scope: SearchScope
    filter: Mapping[str, Any] | None = None
    """Only messages whose thread's metadata fits; see `filters`."""
    threshold: float | None = None
    """The least similarity that counts as a match by meaning."""
    catch_up: bool = True
    """Whether to embed and to index first what the scope still waits for."""
    with_syntax: bool = True
    """Whether "phrases" and -words are demands, or what somebody just wrote."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, best first."""

    scored: list[Scored]
    words: WordQuery | None
    """The words that were looked for; None when it was by meaning alone."""
    usage_tokens: int = 0


def find(search: Search, kind: Kind, *, limit: int) -> Found:
    """The best messages.

    By words: those that hold any of the words, every "phrase" and no -word. By meaning: those
    with the nearest vectors. By meaning alone raises `ProviderUnavailable`, `ProviderRefused` and
    `EmbedderMismatch`; a search for both goes on with the words then.
    """
    vectors_wait = search.catch_up and _catch_up(search, kind)
    if kind == "semantic":
        near, tokens = _by_meaning(search, limit, vectors_wait=vectors_wait)
        return Found(near, None, tokens)
    words = query.read(search.query, with_syntax=search.with_syntax)
    if kind == "text":
        return Found(_by_words(search, words, limit), words)
    scored, tokens = _by_both(search, words, limit, vectors_wait=vectors_wait)
    return Found(scored, words, tokens)


def _by_both(
    search: Search, words: WordQuery, limit: int, *, vectors_wait: bool
) -> tuple[list[Scored], int]:
    if limit <= 0:
        return [], 0
    is_named = search.scope.is_named
    known = (
        term_statistics.estimate(words.terms, search.scope) if is_named and words.terms else None
    )
    try:
        near, tokens = _by_meaning(
            search, max(limit, fusion.MEANINGS), known, vectors_wait=vectors_wait
        )
    except (ProviderUnavailable, ProviderRefused, EmbedderMismatch) as error:
        logger.warning("Only words are searched for (%s)", type(error).__name__)
        near, tokens = [], 0
    said = _by_words(search, words, max(limit, fusion.WORDS), known)
    if not (search.filter or words.demand):
        return fusion.fuse(said, near, limit=limit), tokens
    fused = fusion.fuse(said, near, limit=sys.maxsize)
    allowed = {scored.id for scored in said} | _allowed(search, words, fused)
    return [scored for scored in fused if scored.id in allowed][:limit], tokens


def _allowed(search: Search, words: WordQuery, found: Sequence[Scored]) -> set[str]:
    """Which of what was found by meaning, or beside it, fits the filter and the demands."""
    where = metadata_filters.for_message(search.filter)
    where.add("m.id = ANY(%s)", [scored.id for scored in found])
    if words.demand:
        where.add("m.search @@ %s::tsquery", words.demand)
    kept = sql.rows(f"SELECT m.id FROM mastra_memory_message m WHERE {where}", where.params)
    return {message_id for (message_id,) in kept}


def _by_words(
    search: Search, words: WordQuery, limit: int, known: Rarity | None = None
) -> list[Scored]:
    return bm25.find_by_words(words, search.scope, limit=limit, matching=search.filter, known=known)


def _by_meaning(
    search: Search, limit: int, known: Rarity | None = None, *, vectors_wait: bool
) -> tuple[list[Scored], int]:
    model = conf.app_settings().EMBEDDER
    asked = json_text.clean_text(search.query)
    cut = passages.cut(asked, embedder.get_embedder(model).passage_bytes)[:QUERY_PASSAGES]
    if not cut:
        return [], 0
    if vectors_wait:
        requests = search.scope.condition("r")
        indexing.embed_batch(
            model, limit=CATCH_UP_MESSAGES, scope=requests, timeout=CATCH_UP_SECONDS
        )
    made = embedder.embed_query(model, cut)
    _record(model, made, search)
    wanted = Meaning(
        model=model,
        vectors=made.vectors,
        scope=search.scope,
        filter=search.filter,
        threshold=search.threshold,
        messages=known.messages if known else 0,
    )
    return vector.find_by_meaning(wanted, limit=limit), made.tokens


def _catch_up(search: Search, kind: Kind) -> bool:
    """Index what was saved just now, and tell whether vectors are waited for; one statement."""
    requests, messages = search.scope.condition("r"), search.scope.condition("m")
    waiting = sql.row(
        f"""SELECT EXISTS (SELECT FROM mastra_memory_message m
                WHERE m.search IS NULL AND {messages}),
            EXISTS (SELECT FROM mastra_memory_embeddingrequest r
                WHERE {requests} AND r.model = %s AND r.error = '' AND r.failed_at IS NULL)""",
        [*messages.params, *requests.params, conf.app_settings().EMBEDDER],
    )
    assert waiting is not None
    if waiting[0] and kind != "semantic":
        tsvector.write_pending(messages)
    return bool(waiting[1] and search.scope.is_named)


def _record(model: str, made: Embedded, search: Search) -> None:
    if made.tokens and search.catch_up:
        usage.record(
            ModelUsage.Purpose.EMBEDDING,
            model,
            input_tokens=made.tokens,
            thread_id=search.scope.thread_id,
            resource_id=search.scope.resource_id,
        )
