"""Index the words of messages in the column `Message.search`, a `tsvector` of the text.

This takes longer than storing the messages. After a large save, a task does it. Before a search,
the pending messages of its scope are indexed.
"""

from django.db.models import F, QuerySet

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import Message
from mastra_memory.search import queries

MAX_MESSAGES_ON_SAVE = 10
"""If a save has more messages than this, a task indexes their words."""
MAX_MESSAGES_BEFORE_SEARCH = 1_000
"""How many pending messages are indexed before a search, the newest first."""


@retry_conflicts
def index_pending_words(
    scope: sql.Where | None = None, *, limit: int = MAX_MESSAGES_BEFORE_SEARCH
) -> int:
    """Index the words of pending messages, the newest first, and return how many.

    `scope` is a condition on messages `m`. Several workers may run this at once: each skips the
    messages that another one has locked.
    """
    return queries.update_pending_words(scope or sql.Where(), limit)


def list_messages_with_words(words: str) -> QuerySet[Message]:
    """Return the messages that contain all the words, in no order.

    Recently saved messages are indexed first, so that they are found.
    """
    index_pending_words()
    language = conf.app_settings().SEARCH_LANGUAGE
    return Message.objects.filter(queries.has_all_words(F("search"), words, language))
