"""Find messages across all conversations, for the message list of the admin."""

from django.db.models import F, Func, QuerySet
from django.db.models.fields import BooleanField

from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.models import Message, Thread
from mastra_memory.review import masked_search
from mastra_memory.review.conversation_pages import MessageMatches
from mastra_memory.search import lists, query

MAX_RESULTS = 300
"""A search returns at most this many messages, newest first."""
MAX_LISTED_THREADS = 2_000
"""Without a search, the list covers this many conversations, newest activity first.

No index orders the messages of all conversations by time. With this limit the database reads only
the messages of these conversations, however many others there are.
"""


class HasToolCall(Func):
    """Condition: the message contains a tool call."""

    template = "(%(expressions)s @? '$.parts[*].toolInvocation')"
    output_field = BooleanField()
    conditional = True

    def __init__(self, content: str = "content") -> None:
        """Take the name of the JSON field with the content of the message."""
        super().__init__(F(content))


def filter_recent_threads(
    messages: QuerySet[Message], threads: QuerySet[Thread]
) -> QuerySet[Message]:
    """Return the messages that belong to the `MAX_LISTED_THREADS` most recent of the threads."""
    newest = threads.order_by("-updated_at", "-pk").values("pk")[:MAX_LISTED_THREADS]
    return messages.filter(thread__in=newest)


def find_messages(messages: QuerySet[Message], text: str, mask: Mask) -> MessageMatches:
    """Return those messages that meet the query, newest first.

    A query that is the id of a message also finds this message. Words are found only where `mask`
    leaves them readable; otherwise a search would reveal masked values.

    Raises:
        InvalidInput: A role or date in the query is invalid.
    """
    parsed = query.parse_query(text)
    named = list(messages.filter(pk=text.strip()).values_list("pk", flat=True))
    if parsed.problem:
        return MessageMatches(named, parsed)
    candidates = parsed if mask is keep_text else parsed.without_exclusions()
    matching = lists.list_messages(parsed, candidates.all_words_filter).values("pk")
    newest = messages.filter(pk__in=matching).order_by("-created_at", "-sequence")
    ids = list(newest.values_list("pk", flat=True)[:MAX_RESULTS])
    readable = masked_search.filter_readable_messages(ids, parsed.all_words_filter, mask)
    return MessageMatches([*named, *(pk for pk in ids if pk in readable)], parsed)
