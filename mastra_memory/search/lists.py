"""Find the messages of a list: those that meet the whole query, without ranking them."""

from typing import Any

from django.db.models import BooleanField, F, Func, Q, QuerySet, Value

from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.models import Message
from mastra_memory.search import query, tsvector
from mastra_memory.search.query import WordQuery

_LOOKUPS = {"$eq": "", "$gte": "__gte", "$lt": "__lt"}


class WordMatch(Func):
    """Condition: a `tsvector` column matches the text of a `tsquery`."""

    template = "(%(expressions)s::tsquery)"
    arg_joiner = " @@ "
    output_field = BooleanField()
    conditional = True

    def __init__(self, column: str, condition: str) -> None:
        """Take the name of the column and the query."""
        # Django's `SearchQuery` builds a tsquery from words. Here it is already one.
        super().__init__(F(column), Value(condition))


def list_messages(parsed: WordQuery, condition: str | None) -> QuerySet[Message]:
    """Return the messages that meet a condition on words, and those on role and time, in no order.

    `condition` is a `tsquery` of the query, such as `query.all_words_filter`; None stands for no
    condition. Recently saved messages, titles and notes are indexed first, so that they are found.
    """
    tsvector.index_pending_words()
    messages = Message.objects.filter(build_message_condition(parsed))
    return messages.filter(WordMatch("search", condition)) if condition else messages


def search_messages(text: str) -> QuerySet[Message]:
    """Return the messages that meet a query, with all of its words, in no order.

    Raises:
        InvalidInput: The query cannot find anything, or it has an invalid role or date.
    """
    parsed = query.parse_query(text)
    if parsed.problem:
        reason = query.PROBLEMS[parsed.problem]
        raise InvalidInput(f"text {reason}", [Issue("text", reason)])
    return list_messages(parsed, parsed.all_words_filter)


def build_message_condition(parsed: WordQuery) -> Q:
    """Return the conditions on role and time; `query.message_filter` has the same as SQL."""
    result = Q()
    conditions: list[dict[str, dict[str, Any]]] = parsed.message_filter.get("$and", [])
    for condition in conditions:
        for key, operators in condition.items():
            for operator, value in operators.items():
                if operator == "$ne":
                    result &= ~Q(**{key: value})
                else:
                    result &= Q(**{key + _LOOKUPS[operator]: value})
    return result
