"""Messages of all conversations: a read-only list to search and filter."""

from collections.abc import Mapping
from typing import Any, cast

from django.contrib import admin
from django.contrib import messages as django_messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access
from mastra_memory.admin.base import ReadOnlyAdmin
from mastra_memory.admin.changelist import (
    MAX_COUNT,
    BoundedPaginator,
    TruncatedChangeList,
    annotate_thread_title,
    get_thread_label,
)
from mastra_memory.admin.conversation import conversation_url
from mastra_memory.admin.markdown import escape_bidi_overrides, render_highlights
from mastra_memory.content.redaction import MAX_MATCH_CHARS, mask_beginning
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Message
from mastra_memory.review import message_search, thread_search
from mastra_memory.review.conversation_pages import MessageMatches
from mastra_memory.review.filters import HasFailedToolCall

PREVIEW_CHARACTERS = 160
TITLE_CHARACTERS = 100


class ConditionFilter(admin.SimpleListFilter):
    """A yes/no filter on a condition that the database evaluates."""

    condition: Q | Any

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the choices."""
        return [("yes", _("yes")), ("no", _("no"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Message]) -> QuerySet[Message]:
        """Apply the chosen value. Any other value does not filter."""
        match self.value():
            case "yes":
                return queryset.filter(self.condition)
            case "no":
                return queryset.exclude(self.condition)
        return queryset


class ToolCallFilter(ConditionFilter):
    """Messages with or without a tool call."""

    title = _("tool call")
    parameter_name = "tool_call"
    condition = message_search.HasToolCall()


class ErrorFilter(ConditionFilter):
    """Messages with or without a failed tool call."""

    title = _("tool error")
    parameter_name = "error"
    condition = HasFailedToolCall()


def _find_messages(request: HttpRequest, messages: QuerySet[Message], text: str) -> MessageMatches:
    if access.refuse_masked_search(request, text):
        return MessageMatches()
    try:
        return message_search.find_messages(messages, text, access.get_mask(request.user))
    except InvalidInput as error:
        django_messages.error(request, str(error))
        return MessageMatches()


class MessageChangeList(TruncatedChangeList):
    """The list, with the matching passage of each message after a search."""

    passages: Mapping[str, SafeString]
    matches: MessageMatches = MessageMatches()

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        """Apply the filters and the search. Without a search, list recent conversations only."""
        # Without a query, Django only applies the filters.
        query, self.query = self.query, ""
        messages = super().get_queryset(request, exclude_parameters)
        self.query = query
        if query.strip():
            self.matches = _find_messages(request, messages, query)
            return messages.filter(pk__in=self.matches.ids)
        return message_search.filter_recent_threads(messages, access.visible_threads(request))

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, then the passages for it in one statement."""
        super().get_results(request)
        self.is_count_exact = self.result_count <= MAX_COUNT
        messages = list(self.result_list)
        self.passages = {}
        if self.query.strip() and messages:
            ids = [message.pk for message in messages]
            passages = thread_search.highlight_passages(
                ids, self.matches.query, access.get_mask(request.user)
            )
            self.passages = {pk: render_highlights(html) for pk, html in passages.items()}
        self.result_list = messages


class MessageAdmin(ReadOnlyAdmin):
    """Messages of the threads that the user may see. Each row links into its conversation."""

    list_filter = ["role", ToolCallFilter, ErrorFilter, "created_at"]
    search_fields = ["id"]
    search_help_text = _("Words of a message, or the id of a message")
    ordering = ["-created_at", "-sequence"]
    sortable_by = ()
    list_per_page = 50
    list_max_show_all = 0
    list_display_links = None
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    actions = None
    change_list_template = "admin/mastra_memory/message_list.html"

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return True for users who may read conversations."""
        return access.has_permission(request.user, "view_thread")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        """Return the messages of visible threads."""
        messages = super().get_queryset(request)
        threads = access.visible_threads(request).order_by()
        if threads.query.where:
            messages = messages.filter(thread__in=threads.values("pk"))
        return messages

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type:
        """Return the change list class of this list."""
        return MessageChangeList

    def get_search_fields(self, request: HttpRequest) -> Any:
        """Disable autocompletion, which would show messages without the mask of the user."""
        match = request.resolver_match
        return () if match and match.url_name == "autocomplete" else self.search_fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Message], search_term: str
    ) -> tuple[QuerySet[Message], bool]:
        """Search through the word index, never with LIKE."""
        if not search_term.strip():
            return queryset, False
        return queryset.filter(pk__in=_find_messages(request, queryset, search_term).ids), False

    def defer_long_columns(self, messages: QuerySet[Message]) -> QuerySet[Message]:
        """Leave out long columns, with `beginning` and `thread_title` in their place."""
        beginning = Left("text", PREVIEW_CHARACTERS + 2 * MAX_MATCH_CHARS)
        messages = annotate_thread_title(messages.select_related("thread"))
        return messages.defer("content", "text", "search").annotate(
            beginning=beginning,
            has_tool_call=message_search.HasToolCall(),
            has_error=HasFailedToolCall(),
        )

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Add the links to the neighbouring pages."""
        response: Any = super().changelist_view(request, extra_context)
        changelist = getattr(response, "context_data", {}).get("cl")
        if changelist is not None:
            page, pages = changelist.page_num, changelist.paginator.num_pages
            response.context_data |= {
                "previous_href": changelist.get_query_string({"p": page - 1}),
                "next_href": changelist.get_query_string({"p": page + 1}) if page < pages else "",
            }
        return response

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Give the list the columns that depend on the user and on the search."""
        changelist = cast(MessageChangeList, super().get_changelist_instance(request))
        changelist.list_display = self._get_columns(request, changelist)
        return changelist

    def _get_columns(self, request: HttpRequest, changelist: Any) -> list[Any]:
        mask = access.get_mask(request.user)

        @admin.display(description=_("message"))
        def preview(message: Any) -> str:
            text = mask_beginning(message.beginning, mask, PREVIEW_CHARACTERS)
            return format_html(
                '<a class="mm-preview-link" href="{}"><bdi>{}</bdi></a>',
                conversation_url(message.thread_id, at=message.pk),
                changelist.passages.get(message.pk)
                or escape_bidi_overrides(text)
                or gettext("(no text)"),
            )

        @admin.display(description=_("conversation"))
        def conversation(message: Any) -> str:
            title = mask_beginning(get_thread_label(message), mask, TITLE_CHARACTERS)
            return format_html("<bdi>{}</bdi>", escape_bidi_overrides(title))

        @admin.display(description=_("tools"))
        def tools(message: Any) -> str:
            if message.has_error:
                return gettext("failed")
            return gettext("called") if message.has_tool_call else "–"

        return [preview, "role", conversation, tools, "created_at"]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Redirect to the message in its conversation."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        message = self.get_queryset(request).only("thread_id").filter(pk=unquote(object_id)).first()
        if message is None:
            raise Http404
        return HttpResponseRedirect(conversation_url(message.thread_id, at=message.pk))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the conversation, which shows its own history."""
        return self.change_view(request, object_id)
