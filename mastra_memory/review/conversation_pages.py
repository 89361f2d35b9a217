"""Read a conversation page by page.

Pages start at a message, not at an offset: they stay fast in long threads, and new messages do not
shift them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from django.db.models import Count, Q, QuerySet, RowRange, Sum, Window

from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.models import Message, ReviewNote
from mastra_memory.review import masked_search
from mastra_memory.review.filters import HasFailedToolCall
from mastra_memory.search import lists, query
from mastra_memory.search.query import WordQuery
from mastra_memory.types import MessageSelection

PAGE_SIZE = 40
MAX_PAGE_BYTES = 8 * 1024 * 1024
"""A page ends when its content reaches this size, even if it has fewer messages than requested.

Every page has at least one message.
"""
MAX_LISTED_MESSAGES = 500
"""Message ids that a list of matches holds."""
LOADED_FIELDS = (
    "id",
    "sequence",
    "role",
    "signal",
    "type",
    "content",
    "created_at",
    "edited_at",
    "thread_id",
)


@dataclass(frozen=True, slots=True)
class MessageMatches:
    """Messages that a search found."""

    ids: Sequence[str] = ()
    query: WordQuery | None = None
    """The parsed query."""

    @property
    def problem(self) -> str:
        """Why the query cannot find anything; empty if it can."""
        return self.query.problem if self.query else ""


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Consecutive messages of a thread, oldest first."""

    messages: Sequence[Message]
    has_earlier: bool
    has_later: bool


def _messages_of(thread_id: str) -> QuerySet[Message]:
    return Message.objects.filter(thread_id=thread_id).only(*LOADED_FIELDS)


# `created_at` is compared twice, so that PostgreSQL can start in the index at the message.
def _before(message: Message) -> Q:
    same = Q(created_at=message.created_at, sequence__lt=message.sequence)
    return Q(created_at__lte=message.created_at) & (Q(created_at__lt=message.created_at) | same)


def _after(message: Message) -> Q:
    same = Q(created_at=message.created_at, sequence__gt=message.sequence)
    return Q(created_at__gte=message.created_at) & (Q(created_at__gt=message.created_at) | same)


def find_message(thread_id: str, message_id: str) -> Message | None:
    """Return the message, or None if the thread has no such message."""
    return _messages_of(thread_id).filter(pk=message_id).first()


def get_newest_page(thread_id: str, *, size: int = PAGE_SIZE) -> ConversationPage:
    """Return the last `size` messages of the thread."""
    messages, has_earlier = _read_page(_messages_of(thread_id), size, newest_first=True)
    return ConversationPage(messages[::-1], has_earlier, False)


def get_oldest_page(thread_id: str, *, size: int = PAGE_SIZE) -> ConversationPage:
    """Return the first `size` messages of the thread."""
    messages, has_later = _read_page(_messages_of(thread_id), size)
    return ConversationPage(messages, False, has_later)


def get_page_before(message: Message, *, size: int = PAGE_SIZE) -> ConversationPage:
    """Return the `size` messages that precede `message`, without it."""
    earlier = _messages_of(message.thread_id).filter(_before(message))
    messages, has_earlier = _read_page(earlier, size, newest_first=True)
    return ConversationPage(messages[::-1], has_earlier, True)


def get_page_after(message: Message, *, size: int = PAGE_SIZE) -> ConversationPage:
    """Return the `size` messages that follow `message`, without it."""
    later = _messages_of(message.thread_id).filter(_after(message))
    messages, has_later = _read_page(later, size)
    return ConversationPage(messages, True, has_later)


def _read_page(
    messages: QuerySet[Message], size: int, *, newest_first: bool = False
) -> tuple[list[Message], bool]:
    """Return up to `size` of the messages, and whether more follow.

    Fewer are returned where their content reaches `MAX_PAGE_BYTES`: a page of messages of 20 MB
    each would fill the memory of the web process.
    """
    order = ("-created_at", "-sequence") if newest_first else ("created_at", "sequence")
    # The page is chosen by keys first, so that only its own rows are measured.
    keys = messages.order_by(*order).values("pk")[: size + 1]
    bytes_before = Window(Sum("content_bytes"), order_by=order, frame=RowRange(None, -1))
    page = (
        Message.objects.filter(pk__in=keys)
        .only(*LOADED_FIELDS)
        .annotate(bytes_before=bytes_before, key_count=Window(Count("pk")))
        .filter(Q(bytes_before=None) | Q(bytes_before__lt=MAX_PAGE_BYTES))
        .order_by(*order)
    )
    rows = list(page)
    has_more = bool(rows) and rows[0].key_count > len(rows[:size])
    return cast(list[Message], rows[:size]), has_more


def get_page_around(message: Message, *, size: int = PAGE_SIZE) -> ConversationPage:
    """Return `message` with a quarter of a page before it and three quarters after it."""
    earlier = get_page_before(message, size=size // 4)
    later = get_page_after(message, size=size * 3 // 4)
    messages = [*earlier.messages, message, *later.messages]
    return ConversationPage(messages, earlier.has_earlier, later.has_later)


def find_first_unread(thread_id: str, read_up_to: datetime | None) -> str | None:
    """Return the id of the first message after `read_up_to`, or None if there is none."""
    messages = Message.objects.filter(thread_id=thread_id).order_by("created_at", "sequence")
    if read_up_to is not None:
        messages = messages.filter(created_at__gt=read_up_to)
    return messages.values_list("pk", flat=True).first()


def find_newest_id(thread_id: str) -> str | None:
    """Return the id of the newest message of the thread, or None if it has none."""
    messages = Message.objects.filter(thread_id=thread_id).order_by("-created_at", "-sequence")
    return messages.values_list("pk", flat=True).first()


def count_messages_after(thread_id: str, message_id: str) -> int:
    """Return how many messages follow this one, at most `MAX_LISTED_MESSAGES`.

    Return 0 if the thread has no such message.
    """
    message = find_message(thread_id, message_id)
    if message is None:
        return 0
    later = Message.objects.filter(thread_id=thread_id).filter(_after(message))
    return later.order_by("created_at", "sequence").values("pk")[:MAX_LISTED_MESSAGES].count()


def list_messages_with_notes(thread_id: str) -> list[str]:
    """Return the ids of the messages with review notes, oldest first."""
    notes = ReviewNote.objects.filter(thread_id=thread_id, message_id__isnull=False)
    messages = Message.objects.filter(thread_id=thread_id, pk__in=notes.values("message_id"))
    return _list_ids(messages)


def list_messages_with_failed_tools(thread_id: str) -> list[str]:
    """Return the ids of the messages with failed tool calls, oldest first."""
    return _list_ids(Message.objects.filter(HasFailedToolCall(), thread_id=thread_id))


def find_messages(thread_id: str, text: str, mask: Mask = keep_text) -> MessageMatches:
    """Return the messages of the thread that meet the query, oldest first.

    If no message has all of its words, those with any of them are returned. A message counts only
    if its text still meets the query after `mask`.

    Raises:
        InvalidInput: A role or date in the query is invalid.
    """
    parsed = query.parse_query(text)
    if parsed.problem:
        return MessageMatches(query=parsed)
    ids = _find_messages(thread_id, parsed, mask, "all_words_filter")
    if not ids and len(parsed.words) > 1:
        ids = _find_messages(thread_id, parsed, mask, "any_word_filter")
    return MessageMatches(ids, parsed)


def _find_messages(
    thread_id: str,
    parsed: WordQuery,
    mask: Mask,
    condition: Literal["all_words_filter", "any_word_filter"],
) -> list[str]:
    candidates = parsed if mask is keep_text else parsed.without_exclusions()
    messages = lists.list_messages(parsed, getattr(candidates, condition))
    ids = _list_ids(messages.filter(thread_id=thread_id))
    readable = masked_search.filter_readable_messages(ids, getattr(parsed, condition), mask)
    return [pk for pk in ids if pk in readable]


def _list_ids(messages: QuerySet[Message]) -> list[str]:
    ordered = messages.order_by("created_at", "sequence")
    return list(ordered.values_list("pk", flat=True)[:MAX_LISTED_MESSAGES])


def select_messages_up_to(message: Message) -> MessageSelection:
    """Return a selection of the messages up to and including `message`, to clone them."""
    earlier = Message.objects.filter(thread_id=message.thread_id).filter(_before(message))
    return MessageSelection(message_ids=[*earlier.values_list("pk", flat=True), message.pk])
