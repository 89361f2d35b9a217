"""Lists of large tables: bounded counts, search through the word index, few statements."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import F, Func, QuerySet, Value
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from mastra_memory.admin import access
from mastra_memory.admin.markdown import escape_bidi_overrides, render_highlights
from mastra_memory.content.redaction import MAX_MATCH_CHARS, mask_beginning
from mastra_memory.db import json_text
from mastra_memory.db.users import get_usernames
from mastra_memory.exceptions import MastraMemoryError
from mastra_memory.models import Thread
from mastra_memory.review import thread_search, visits

MAX_COUNT = 1_000
"""Lists count at most this many rows. Beyond it the page shows "more than"."""


if TYPE_CHECKING:
    _Paginator = Paginator[Any]
else:  # Django's class takes no type arguments when it runs.
    _Paginator = Paginator


class BoundedPaginator(_Paginator):
    """A paginator that stops counting at `MAX_COUNT`."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, or `MAX_COUNT` + 1 if there are more."""
        rows: Any = self.object_list
        count: int = rows.order_by().values("pk")[: MAX_COUNT + 1].count()
        return count


TITLE_CHARACTERS = 200
"""Length of a title in a list."""


def truncate_title(field: str = "title") -> Left:
    """Return an expression for the beginning of a title.

    It is longer than what a list shows, so that a personal value at the end is masked as a whole.
    """
    return Left(field, TITLE_CHARACTERS + 2 * MAX_MATCH_CHARS)


def annotate_thread_title(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate rows with `thread_title`, the beginning of the title of their thread."""
    rows = rows.defer("thread__title", "thread__metadata", "thread__title_request")
    annotated: QuerySet[Any] = rows.annotate(thread_title=truncate_title("thread__title"))
    return annotated


def get_thread_label(row: Any) -> str:
    """Return the title or id of the thread of a row, or its resource id."""
    return str(row.thread_title or row.thread_id or row.resource_id)


class TruncatedChangeList(ChangeList):
    """A list that reads only the beginning of long columns.

    Its model admin has a method `defer_long_columns(queryset)`.
    """

    def get_results(self, request: HttpRequest) -> None:
        """Read the page without long columns. Actions still get complete rows."""
        model_admin: Any = self.model_admin
        self.queryset = model_admin.defer_long_columns(self.queryset)
        super().get_results(request)


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """Values that the list shows in addition to the columns of the thread.

    Django passes only the thread to the columns of a list, so the values are set on it as `row`.
    """

    title: str
    """Beginning of the title, masked for the user."""
    messages: str
    role: str
    preview: str
    passage: str
    """HTML with the matching words marked; empty without a search."""
    passage_id: str
    has_unread: bool
    """Whether there are messages newer than the last one that the user has seen."""
    assignee: str
    """The user name of the assignee; empty if there is none."""


class ThreadChangeList(TruncatedChangeList):
    """The thread list with message counts, previews and matching passages."""

    found: thread_search.ThreadMatches | None = None

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        """Apply the filters, then the search. Keep the matching messages for `get_results`."""
        # Without a query, Django only applies the filters.
        query, self.query = json_text.clean_text(self.query), ""
        threads = super().get_queryset(request, exclude_parameters)
        self.query = query
        if query.strip():
            threads, self.found = search_threads(request, threads, query)
        return threads

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, then previews, tags and passages with one statement each."""
        super().get_results(request)
        self.is_count_exact = self.result_count <= MAX_COUNT
        self.by_meaning = request.GET.get("by") == "meaning" and bool(self.query)
        self.meaning_query = (
            _build_semantic_query(request) if self.query and not self.by_meaning else ""
        )
        threads = list(self.result_list)
        mask = access.get_mask(request.user)
        previews = thread_search.load_previews([thread.pk for thread in threads], mask)
        positions = visits.list_read_positions([thread.pk for thread in threads], request.user)
        passages = self._passages([thread.pk for thread in threads], mask)
        assigned = {t.pk: t.review.assignee_id for t in threads if getattr(t, "review", None)}
        names = get_usernames(filter(None, assigned.values()))
        for thread in threads:
            preview = previews[thread.pk]
            hit = (self.found.messages.get(thread.pk) if self.found else None) or ""
            thread.row = ThreadRow(
                title=mask_beginning(thread.short_title, mask, TITLE_CHARACTERS),
                messages=_format_count(preview.messages),
                role=preview.role,
                preview=preview.preview,
                passage=passages.get(hit, ""),
                passage_id=hit,
                has_unread=_is_after(preview.written_at, positions.get(thread.pk)),
                assignee=names.get(assigned.get(thread.pk) or "", ""),
            )
        self.result_list = threads

    def _passages(self, thread_ids: list[str], mask: Any) -> dict[str, str]:
        if self.found is None:
            return {}
        hits = [self.found.messages.get(pk) for pk in thread_ids]
        wanted = [hit for hit in hits if hit]
        found = thread_search.highlight_passages(wanted, self.found.query, mask) if wanted else {}
        return {pk: render_highlights(passage) for pk, passage in found.items()}


def _build_semantic_query(request: HttpRequest) -> str:
    """Return the query string of the same search by meaning."""
    kept = [(name, value) for name, value in request.GET.items() if value and name != "p"]
    return urlencode({**dict(kept), "by": "meaning"})


def _is_after(time: datetime | None, other: datetime | None) -> bool:
    return time is not None and other is not None and time > other


def _format_count(count: int) -> str:
    return f"{count}+" if count >= thread_search.MAX_LISTED_MESSAGE_COUNT else str(count)


def search_threads(
    request: HttpRequest, threads: QuerySet[Thread], words: str
) -> tuple[QuerySet[Thread], thread_search.ThreadMatches | None]:
    """Return the matching threads and, unless the search failed, the matching messages."""
    by_meaning = request.GET.get("by") == "meaning"
    if access.refuse_masked_search(request, words):
        return threads.none(), None
    try:
        if by_meaning:
            found = thread_search.find_threads_by_meaning(threads, words)
        else:
            found = thread_search.find_threads_by_words(
                threads, words, access.get_mask(request.user)
            )
    except MastraMemoryError as error:
        messages.error(request, str(error))
        return threads.none(), None
    if found.threads is not None:
        return found.threads, found
    threads = threads.filter(pk__in=list(found.messages))
    if (by_meaning or found.missing_words) and "o" not in request.GET:
        nearest = Func(Value(list(found.messages)), F("pk"), function="array_position")
        threads = threads.order_by(nearest)
    return threads, found


def mask_titles(request: HttpRequest, threads: QuerySet[Thread]) -> QuerySet[Thread]:
    """Return the same threads with titles masked for the user, for Django's autocompletion.

    It shows each thread as `str(thread)`, which contains the title.
    """
    mask = access.get_mask(request.user)

    class MaskedThreads(QuerySet[Thread]):
        def __iter__(self) -> Iterator[Any]:
            for thread in super().__iter__():
                beginning = mask_beginning(thread.title, mask, TITLE_CHARACTERS)
                thread.title = escape_bidi_overrides(beginning)
                yield thread

    return MaskedThreads(model=Thread, query=threads.query, using=threads.db)


def render_tag_links(names: list[str]) -> SafeString:
    """Return tags as links to the list of all threads with that tag."""
    cells = ((urlencode({"tag": name}), name) for name in names)
    return format_html_join(" ", '<a class="mm-tag" href="?{}">{}</a>', cells)
