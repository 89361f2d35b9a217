"""Search by words: messages that contain any of them are candidates, and BM25 ranks these.

BM25 weights a word by how rare it is within the scope of the search, which PostgreSQL's `ts_rank`
does not. The formula and its constants are in `queries.rank_by_bm25`.

Ranking every message that contains a common word would be slow in a long scope, so there only the
rarer words select candidates, and common words only add to their scores. A message that contains
only common words would rank low anyway.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mastra_memory.search import metadata_filters, queries, term_statistics
from mastra_memory.search.query import WordQuery
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.term_statistics import TermStatistics
from mastra_memory.search.times import boost
from mastra_memory.search.types import ScoredMessage, TermPlan
from mastra_memory.types import TimeRange

MAX_CANDIDATES = 4_000
"""The largest number of candidates. If more messages match, the newest are ranked."""
MAX_CANDIDATES_LONG_SCOPE = 1_000
"""The largest number in a long scope, where messages with rarer words are preferred."""
MIN_RARE_CANDIDATES = 200
"""In a long scope, add terms, the rarest first, until about this many messages match."""
MAX_RARE_CANDIDATES = 400
"""Then do not add a term if more messages than this would match."""
MAX_RANKING_TERMS = 8
"""How many terms, the rarest, are used in a long scope. More hardly change the order."""


def find_by_words(
    query: WordQuery,
    scope: SearchScope,
    *,
    limit: int,
    metadata_filter: Mapping[str, Any] | None = None,
    statistics: TermStatistics | None = None,
    ranges: Sequence[TimeRange] = (),
) -> list[ScoredMessage]:
    """Return the best messages, best first. Of equal scores, the newer message comes first.

    A word in a thread's title adds to the scores of the thread's matching messages and of its
    newest message. Executes at most two statements.

    Args:
        query: The parsed query.
        scope: Where to search.
        limit: How many messages to return.
        metadata_filter: A filter in Mastra's language; see `metadata_filters`.
        statistics: How rare the query's terms are in the scope, if that was estimated already.
        ranges: Only messages of these times. With `statistics`, their scores are comparable with
            those of a search without ranges.

    Raises:
        InvalidInput: The filter is invalid.
    """
    if query.filter is None or limit <= 0:
        return []
    plan = _plan_terms(query, scope, limit, statistics)
    matching = metadata_filters.build_message_condition(metadata_filter)
    if ranges:
        in_ranges = boost.build_condition(ranges)
        matching.add(str(in_ranges), *in_ranges.params)
        plan = _use_estimates(plan, query, statistics)
    return queries.rank_by_bm25(plan, scope, matching, limit)


def _plan_terms(
    query: WordQuery, scope: SearchScope, limit: int, statistics: TermStatistics | None
) -> TermPlan:
    """Decide which terms select candidates.

    All terms select candidates if the scope is short, if there is only one term, or if a required
    phrase already limits the candidates.
    """
    all_terms = TermPlan(query, query.filter, None, MAX_CANDIDATES, [0.0] * len(query.terms))
    if not scope.is_named or query.required or len(query.terms) < 2:
        return all_terms
    statistics = statistics or term_statistics.estimate_term_statistics(query.terms, scope)
    if statistics.messages <= MAX_RARE_CANDIDATES or not statistics.is_reliable:
        return replace(all_terms, messages=statistics.messages)
    rarest = sorted(range(len(query.terms)), key=statistics.estimate_frequency)
    rarest = rarest[:MAX_RANKING_TERMS]
    frequencies = [statistics.estimate_frequency(index) for index in rarest]
    selecting, rare, candidates = _choose_selecting_terms(frequencies, limit)
    terms = [query.terms[index] for index in rarest]
    # The document frequency of a term is counted among the candidates. That is exact for a term
    # that selects them, unless there are more candidates than are ranked. For all other terms the
    # estimate is a lower bound.
    exact = selecting if candidates <= MAX_RARE_CANDIDATES else rare
    return TermPlan(
        query=replace(query, terms=terms),
        filter=replace(query, terms=terms[:selecting]).filter,
        preferred=replace(query, terms=terms[:rare]).filter if rare < selecting else None,
        max_candidates=MAX_CANDIDATES_LONG_SCOPE,
        min_document_frequencies=[0.0] * exact + frequencies[exact:],
        messages=statistics.messages,
    )


def _use_estimates(plan: TermPlan, query: WordQuery, statistics: TermStatistics | None) -> TermPlan:
    """Use the document frequencies of the whole scope, because only a part of it is searched."""
    if statistics is None or not statistics.is_reliable:
        return plan
    frequencies = {
        term: statistics.estimate_frequency(index) for index, term in enumerate(query.terms)
    }
    estimates = [frequencies[term] for term in plan.query.terms]
    return replace(plan, min_document_frequencies=estimates, messages=statistics.messages)


def _choose_selecting_terms(frequencies: list[float], limit: int) -> tuple[int, int, float]:
    """Return the numbers of terms that select candidates, of rare terms, and of candidates.

    `frequencies` has the number of messages that contain each term, in ascending order. Terms are
    rare if together they select at most `MAX_RARE_CANDIDATES`.
    """
    selecting, rare, candidates = 0, 0, 0.0
    for frequency in frequencies:
        enough = candidates >= max(MIN_RARE_CANDIDATES, limit)
        if enough and candidates + frequency > MAX_RARE_CANDIDATES:
            break
        selecting += 1
        candidates += frequency
        rare += candidates <= MAX_RARE_CANDIDATES
    return selecting, rare, candidates
