"""The parts of SQL that several searches share: words of a message, and its neighbours."""

from django.db.models import BooleanField, ExpressionWrapper, F, Func, QuerySet
from django.db.models.expressions import RawSQL

from mastra_memory import conf
from mastra_memory.db import json_text
from mastra_memory.models import Message
from mastra_memory.search import tsvector

ALL_WORDS_QUERY = """websearch_to_tsquery(%s::regconfig,
    mastra_memory_spaced(mastra_memory_fold(%s)))"""
"""SQL of a `tsquery` that requires all words; the parameters are the language and the words.

Fold and space the words as the index does, or `tea/coffee`, accents and scripts without spaces
would not be found. This also replaces every dash, so there is no way to exclude a word: searches
in masked text rely on that. "Quoted words" must follow each other.
"""


def has_all_words(vector: F | Func, words: str, language: str) -> ExpressionWrapper:
    """Return a condition on a column or expression of type `tsvector`, for `filter()`.

    `language` is a text search configuration of PostgreSQL such as `english` or `simple`. Words
    that it ignores, such as `the` in English, are not required. Nothing matches if no word is left.
    """
    # Not `SearchQuery`: raw statements of the review pages need the same query as SQL text.
    query = RawSQL(ALL_WORDS_QUERY, (language, json_text.clean_text(words)))
    matches = Func(vector, query, arg_joiner=" @@ ", template="(%(expressions)s)")
    return ExpressionWrapper(matches, output_field=BooleanField())


def list_messages_with_words(words: str) -> QuerySet[Message]:
    """Return the messages that contain all the words, in no order.

    Index recently saved messages first, so that they are found.
    """
    tsvector.index_pending_words()
    language = conf.app_settings().SEARCH_LANGUAGE
    return Message.objects.filter(has_all_words(F("search"), words, language))


def build_neighbours(
    anchor: str, columns: str, *, before: str, after: str, condition: str = "TRUE"
) -> str:
    """Return SQL that selects the messages around the row `anchor` of its own thread.

    Each side is one range scan of the index on (thread, created_at, sequence), however long the
    thread is. The ORM has no lateral joins, which is why this is SQL.

    Args:
        anchor: Alias of a row with `thread_id`, `created_at` and `sequence`.
        columns: What to select of a neighbour `m`.
        before: SQL of how many earlier messages to select: a parameter or a column.
        after: The same for later messages.
        condition: Which messages `m` count as neighbours.
    """

    def build_side(sign: str, direction: str, limit: str) -> str:
        return f"""(SELECT {columns} FROM mastra_memory_message m
            WHERE m.thread_id = {anchor}.thread_id AND {condition}
                AND (m.created_at, m.sequence) {sign} ({anchor}.created_at, {anchor}.sequence)
            ORDER BY m.created_at {direction}, m.sequence {direction} LIMIT {limit})"""

    return f"""{build_side("<", "DESC", before)} UNION ALL {build_side(">", "ASC", after)}"""
