"""Read a conversation for people: pages around a message, by time and sequence, never by offset."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.models import Message, ReviewNote
from mastra_memory.review import masked_search
from mastra_memory.review.filters import HasFailedToolCall
from mastra_memory.search import tsvector
from mastra_memory.types import MessageSelection

PAGE_SIZE = 40
LOADED_FIELDS = (
    "id",
    "sequence",
    "role",
    "type",
    "content",
    "created_at",
    "edited_at",
    "thread_id",
)


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Messages in the order of time."""

    messages: Sequence[Message]
    has_earlier: bool
    has_later: bool


def _messages_of(thread_id: str) -> QuerySet[Message]:
    return Message.objects.filter(thread_id=thread_id).only(*LOADED_FIELDS)


def _before(message: Message) -> Q:
    same = Q(created_at=message.created_at, sequence__lt=message.sequence)
    return Q(created_at__lte=message.created_at) & (Q(created_at__lt=message.created_at) | same)


def _after(message: Message) -> Q:
    same = Q(created_at=message.created_at, sequence__gt=message.sequence)
    return Q(created_at__gte=message.created_at) & (Q(created_at__gt=message.created_at) | same)


def find_message(thread_id: str, message_id: str) -> Message | None:
    """The message, if it is this thread's."""
    return _messages_of(thread_id).filter(pk=message_id).first()


def get_newest_page(thread_id: str, *, size: int = PAGE_SIZE) -> ConversationPage:
    """The end of the conversation."""
    found = list(_messages_of(thread_id).order_by("-created_at", "-sequence")[: size + 1])
    return ConversationPage(found[:size][::-1], len(found) > size, False)


def get_oldest_page(thread_id: str, *, size: int = PAGE_SIZE) -> ConversationPage:
    """The beginning of the conversation."""
    found = list(_messages_of(thread_id).order_by("created_at", "sequence")[: size + 1])
    return ConversationPage(found[:size], False, len(found) > size)


def get_page_before(message: Message, *, size: int = PAGE_SIZE) -> ConversationPage:
    """What comes right before a message, without it."""
    earlier = _messages_of(message.thread_id).filter(_before(message))
    found = list(earlier.order_by("-created_at", "-sequence")[: size + 1])
    return ConversationPage(found[:size][::-1], len(found) > size, True)


def get_page_after(message: Message, *, size: int = PAGE_SIZE) -> ConversationPage:
    """What comes right after a message, without it."""
    later = _messages_of(message.thread_id).filter(_after(message))
    found = list(later.order_by("created_at", "sequence")[: size + 1])
    return ConversationPage(found[:size], True, len(found) > size)


def get_page_around(message: Message, *, size: int = PAGE_SIZE) -> ConversationPage:
    """A page with the message in its middle."""
    earlier, later = (
        get_page_before(message, size=size // 4),
        get_page_after(message, size=size * 3 // 4),
    )
    messages = [*earlier.messages, message, *later.messages]
    return ConversationPage(messages, earlier.has_earlier, later.has_later)


def find_first_unread(thread_id: str, read_up_to: datetime | None) -> str | None:
    """The first message after what somebody has read."""
    messages = Message.objects.filter(thread_id=thread_id).order_by("created_at", "sequence")
    if read_up_to is not None:
        messages = messages.filter(created_at__gt=read_up_to)
    return messages.values_list("pk", flat=True).first()


def list_messages_with_notes(thread_id: str) -> list[str]:
    """Messages with notes, in the order of time."""
    noted = ReviewNote.objects.filter(thread_id=thread_id, message_id__isnull=False)
    messages = Message.objects.filter(thread_id=thread_id, pk__in=noted.values("message_id"))
    return _list_ids(messages)


def list_messages_with_failed_tools(thread_id: str) -> list[str]:
    """Messages with failed tool calls, in the order of time."""
    return _list_ids(Message.objects.filter(HasFailedToolCall(), thread_id=thread_id))


def list_messages_with_words(
    thread_id: str, words: str, language: str, mask: Mask = keep_text
) -> list[str]:
    """Return the messages with all the words, where `mask` leaves them readable, by time."""
    found = _list_ids(tsvector.list_messages_with_words(words).filter(thread_id=thread_id))
    readable = masked_search.filter_readable_messages(found, words, language, mask)
    return [pk for pk in found if pk in readable]


def _list_ids(messages: QuerySet[Message], limit: int = 500) -> list[str]:
    ordered = messages.order_by("created_at", "sequence")
    return list(ordered.values_list("pk", flat=True)[:limit])


def select_messages_up_to(message: Message) -> MessageSelection:
    """A thread's messages up to and with this one, for a clone."""
    earlier = Message.objects.filter(thread_id=message.thread_id).filter(_before(message))
    return MessageSelection(message_ids=[*earlier.values_list("pk", flat=True), message.pk])
