"""Find a text of a conversation that is shown as plain text."""

from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import Q
from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access, observation_log, plain_text
from mastra_memory.admin.params import read_integer
from mastra_memory.db.json_text import clean_text
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory


def load_text_page(request: HttpRequest, thread: Thread, what: str, key: str) -> dict[str, Any]:
    """Return the template context. Raises `Http404` if the thread has no such text."""
    if what not in _FINDERS:
        raise Http404
    heading, find = _FINDERS[what]
    texts = find(request, thread, key)
    if texts is None:
        raise Http404
    page = plain_text.read_page(request, texts, access.get_mask(request.user))
    return {"heading": heading, "page": page}


def _find_message_texts(request: HttpRequest, thread: Thread, key: str) -> Iterator[str] | None:
    if (sequence := read_integer(key)) is None:
        return None
    message = Message.objects.filter(thread=thread, sequence=sequence).only("content").first()
    return plain_text.iterate_message_texts(message) if message else None


def _find_memory_texts(request: HttpRequest, thread: Thread, key: str) -> Iterator[str] | None:
    if (pk := read_integer(key)) is None:
        return None
    memory = WorkingMemory.objects.filter(_is_about(thread), pk=pk).first()
    return plain_text.iterate_memory_texts(memory.content) if memory else None


def _find_observation_texts(request: HttpRequest, thread: Thread, key: str) -> Iterator[str] | None:
    record = ObservationalRecord.objects.filter(_is_about(thread), pk=clean_text(key)).first()
    if record is None:
        return None
    hidden = observation_log.find_hidden_threads(request, record)
    return plain_text.iterate_record_texts(record, hidden)


def _is_about(thread: Thread) -> Q:
    return Q(thread=thread) | Q(thread__isnull=True, resource_id=thread.resource_id)


def _find_metadata_texts(request: HttpRequest, thread: Thread, key: str) -> Iterator[str] | None:
    return _iterate_title_and_metadata(thread) if key == "thread" else None


def _iterate_title_and_metadata(thread: Thread) -> Iterator[str]:
    yield f"{thread.title}\n\n"
    yield from plain_text.iterate_json_texts(thread.metadata)


_FINDERS: dict[str, tuple[Any, Callable[[HttpRequest, Thread, str], Iterator[str] | None]]] = {
    "message": (_("Message"), _find_message_texts),
    "memory": (_("Working memory"), _find_memory_texts),
    "observations": (_("Observations"), _find_observation_texts),
    "metadata": (_("Metadata"), _find_metadata_texts),
}
