"""Start here: a search by words, by meaning, or by both, best results first."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mastra_memory import conf, searchable, sql
from mastra_memory.embedding import embedder, indexing, passages
from mastra_memory.embedding.embedder import Embedded
from mastra_memory.exceptions import ProviderUnavailable
from mastra_memory.llm import usage
from mastra_memory.models import ModelUsage
from mastra_memory.search import fusion, meaning, query, text
from mastra_memory.search.meaning import Meaning
from mastra_memory.search.query import WordQuery
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.scored import Scored

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
    """Whether to embed first what the scope still waits for."""


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
    with the nearest vectors. Raises `ProviderRefused`, `EmbedderMismatch` and, by meaning alone,
    `ProviderUnavailable`: a hybrid search goes on with the words.
    """
    if kind == "text":
        words = query.read(search.query)
        return Found(_by_words(search, words, limit), words)
    if kind == "semantic":
        near, tokens = _by_meaning(search, limit)
        return Found(near, None, tokens)
    words = query.read(search.query)
    try:
        near, tokens = _by_meaning(search, max(limit, fusion.MEANINGS))
    except ProviderUnavailable as error:
        logger.warning("Only words are searched for: %s", error)
        near, tokens = [], 0
    return Found(
        fusion.fuse(_by_words(search, words, max(limit, fusion.WORDS)), near, limit=limit),
        words,
        tokens,
    )


def _by_words(search: Search, words: WordQuery, limit: int) -> list[Scored]:
    searchable.write_pending(search.scope.condition("m"))
    return text.find_by_words(words, search.scope, limit=limit, matching=search.filter)


def _by_meaning(search: Search, limit: int) -> tuple[list[Scored], int]:
    model = conf.app_settings().EMBEDDER
    cut = passages.cut(search.query, embedder.get_embedder(model).passage_bytes)[:QUERY_PASSAGES]
    if not cut:
        return [], 0
    if search.catch_up and search.scope.is_named:
        _catch_up(model, search.scope)
    made = embedder.embed_query(model, cut)
    _record(model, made, search)
    wanted = Meaning(
        model=model,
        vectors=made.vectors,
        scope=search.scope,
        filter=search.filter,
        threshold=search.threshold,
    )
    return meaning.find_by_meaning(wanted, limit=limit), made.tokens


def _catch_up(model: str, scope: SearchScope) -> None:
    """Embed what was saved just now; what an embedder cannot do in time is the worker's."""
    where = scope.condition("r")
    pending = sql.row(
        f"""SELECT 1 FROM mastra_memory_embeddingrequest r
        WHERE {where} AND r.model = %s AND r.error = '' AND r.failed_at IS NULL LIMIT 1""",
        [*where.params, model],
    )
    if pending:
        indexing.embed_batch(model, limit=CATCH_UP_MESSAGES, scope=where, timeout=CATCH_UP_SECONDS)


def _record(model: str, made: Embedded, search: Search) -> None:
    if made.tokens and search.catch_up:
        usage.record(
            ModelUsage.Purpose.EMBEDDING,
            model,
            input_tokens=made.tokens,
            thread_id=search.scope.thread_id,
            resource_id=search.scope.resource_id,
        )
