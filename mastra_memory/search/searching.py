"""Start here: a search by words, by meaning, or by both, best results first."""

from mastra_memory.search import hits, query, text
from mastra_memory.search.scope import SearchScope
from mastra_memory.values import SearchHit


def search_words(
    searched: str, scope: SearchScope, *, limit: int, context: tuple[int, int] = hits.CONTEXT
) -> list[SearchHit]:
    """Messages that hold any of the words, every "phrase" and no -word, best first.

    Three statements and one for the snippets, whatever is found.
    """
    words = query.read(searched)
    found = text.find_by_words(words, scope, limit=limit)
    scores = {scored.id: scored.score for scored in found}
    return hits.with_snippets(hits.read_hits(list(scores), context=context, scores=scores), words)
