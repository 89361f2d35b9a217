"""Read a conversation for people: pages around a message, by time and sequence, never by offset."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.models import Message, ReviewNote
from mastra_memory.review import masked_search
from mastra_memory.review.filters import HasFailedTool
from mastra_memory.search import queries
from mastra_memory.types import MessageSelection

PAGE = 40
FIELDS = ("id", "sequence", "role", "type", "content", "created_at", "edited_at", "thread_id")


@dataclass(frozen=True, slots=True)
class Page:
    """Messages in the order of time."""

    messages: Sequence[Message]
    has_earlier: bool
    has_later: bool


def _ordered(thread_id: str) -> QuerySet[Message]:
    return Message.objects.filter(thread_id=thread_id).only(*FIELDS)


def _before(message: Message) -> Q:
    same = Q(created_at=message.created_at, sequence__lt=message.sequence)
    return Q(created_at__lte=message.created_at) & (Q(created_at__lt=message.created_at) | same)


def _after(message: Message) -> Q:
    same = Q(created_at=message.created_at, sequence__gt=message.sequence)
    return Q(created_at__gte=message.created_at) & (Q(created_at__gt=message.created_at) | same)


def find_message(thread_id: str, message_id: str) -> Message | None:
    """The message, if it is this thread's."""
    return _ordered(thread_id).filter(pk=message_id).first()


def newest_page(thread_id: str, *, size: int = PAGE) -> Page:
    """The end of the conversation."""
    found = list(_ordered(thread_id).order_by("-created_at", "-sequence")[: size + 1])
    return Page(found[:size][::-1], len(found) > size, False)


def oldest_page(thread_id: str, *, size: int = PAGE) -> Page:
    """The beginning of the conversation."""
    found = list(_ordered(thread_id).order_by("created_at", "sequence")[: size + 1])
    return Page(found[:size], False, len(found) > size)


def page_before(message: Message, *, size: int = PAGE) -> Page:
    """What comes right before a message, without it."""
    earlier = _ordered(message.thread_id).filter(_before(message))
    found = list(earlier.order_by("-created_at", "-sequence")[: size + 1])
    return Page(found[:size][::-1], len(found) > size, True)


def page_after(message: Message, *, size: int = PAGE) -> Page:
    """What comes right after a message, without it."""
    later = _ordered(message.thread_id).filter(_after(message))
    found = list(later.order_by("created_at", "sequence")[: size + 1])
    return Page(found[:size], True, len(found) > size)


def page_around(message: Message, *, size: int = PAGE) -> Page:
    """A page with the message in its middle."""
    earlier, later = page_before(message, size=size // 4), page_after(message, size=size * 3 // 4)
    messages = [*earlier.messages, message, *later.messages]
    return Page(messages, earlier.has_earlier, later.has_later)


def find_unread(thread_id: str, read_up_to: datetime | None) -> str | None:
    """The first message after what somebody has read."""
    messages = Message.objects.filter(thread_id=thread_id).order_by("created_at", "sequence")
    if read_up_to is not None:
        messages = messages.filter(created_at__gt=read_up_to)
    return messages.values_list("pk", flat=True).first()


def list_noted(thread_id: str) -> list[str]:
    """Messages with notes, in the order of time."""
    noted = ReviewNote.objects.filter(thread_id=thread_id, message_id__isnull=False)
    messages = Message.objects.filter(thread_id=thread_id, pk__in=noted.values("message_id"))
    return _ids(messages)


def list_failed(thread_id: str) -> list[str]:
    """Messages with failed tool calls, in the order of time."""
    return _ids(Message.objects.filter(HasFailedTool(), thread_id=thread_id))


def list_matching(thread_id: str, words: str, language: str, mask: Mask = keep_text) -> list[str]:
    """Return the messages with all the words, where `mask` leaves them readable, by time."""
    found = _ids(queries.list_messages_with_words(words).filter(thread_id=thread_id))
    readable = masked_search.list_readable_messages(found, words, language, mask)
    return [pk for pk in found if pk in readable]


def _ids(messages: QuerySet[Message], limit: int = 500) -> list[str]:
    ordered = messages.order_by("created_at", "sequence")
    return list(ordered.values_list("pk", flat=True)[:limit])


def selection_up_to(message: Message) -> MessageSelection:
    """A thread's messages up to and with this one, for a clone."""
    earlier = Message.objects.filter(thread_id=message.thread_id).filter(_before(message))
    return MessageSelection(message_ids=[*earlier.values_list("pk", flat=True), message.pk])
