"""Base classes of the admin: security headers, time limits, allowed lookups, read-only pages."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.contrib import admin
from django.contrib.admin.utils import get_fields_from_path, quote
from django.db import OperationalError, transaction
from django.db.models import DateField, Model, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.template.response import SimpleTemplateResponse
from django.templatetags.static import static
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from mastra_memory import conf
from mastra_memory.admin import params
from mastra_memory.admin.access import get_mask
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.urls import reverse_page, use_site
from mastra_memory.db import json_text, locking, routing, statement_timeout
from mastra_memory.exceptions import ConcurrentUpdate, ThreadNotFound

View = Callable[..., HttpResponseBase]


def get_static_root() -> str:
    """Return the URL prefix of static files."""
    return static("mastra_memory/").removesuffix("mastra_memory/")


def build_content_security_policy() -> str:
    """Return a policy without inline scripts or styles, and without other hosts.

    The host of the static files is allowed.
    """
    parts = urlsplit(get_static_root())
    files = f"'self' {parts.scheme}://{parts.netloc}" if parts.netloc else "'self'"
    return (
        f"default-src 'none'; script-src {files}; style-src {files}; img-src {files} data:; "
        f"font-src {files}; connect-src 'self'; form-action 'self'; frame-ancestors 'self'; "
        "base-uri 'none'"
    )


def _call_with_timeout(
    view: View, request: HttpRequest, *args: Any, **kwargs: Any
) -> HttpResponseBase:
    """Call the view and render its response, with a limit on each SQL statement.

    A statement that takes too long, or a conflict with other transactions that retries did not
    solve, is answered with a page that explains it. If a thread is deleted after the view has
    looked it up, the response is 404, as for a thread that never existed.
    """
    seconds = conf.app_settings().STATEMENT_TIMEOUT_ADMIN
    try:
        with statement_timeout.limit_statements(seconds):
            response = view(request, *args, **kwargs)
            if isinstance(response, SimpleTemplateResponse):
                response.render()  # Templates may read from the database as well.
            return response
    except ThreadNotFound as error:
        raise Http404(str(error)) from error
    except (OperationalError, ConcurrentUpdate) as error:
        if statement_timeout.is_statement_timeout(error):
            template, status = "too_slow", 503
        elif locking.is_conflict(error):
            template, status = "conflict", 409
        else:
            raise
    if routing.get_connection().in_atomic_block:
        transaction.set_rollback(True, using=routing.get_alias())
    # The page reads nothing from the database: the transaction may be aborted.
    return HttpResponse(render_to_string(f"admin/mastra_memory/{template}.html"), status=status)


def secure_view(view: View) -> View:
    """Wrap a view: clean its parameters, limit its SQL statements and set security headers.

    A Content-Security-Policy that the view sets is kept.
    """

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        params.clean_request(request)
        with use_site(request):
            response = _call_with_timeout(view, request, *args, **params.clean_arguments(kwargs))
        if conf.app_settings().CONTENT_SECURITY_POLICY:
            response.headers.setdefault("Content-Security-Policy", build_content_security_policy())
        response.headers.setdefault("Referrer-Policy", "same-origin")
        return response

    return wrapped


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:  # Django's class takes no type arguments when it runs.
    _ModelAdmin = admin.ModelAdmin


class DeclaredLookupsMixin(_ModelAdmin):
    """Accept in a list's query string only the parameters of the filters in `list_filter`.

    Django accepts any lookup on any field of the model. `?title__startswith=` would let a user
    read a masked title letter by letter, and `?title__regex=` would let a user keep the database
    busy. The change list responds to such a URL with 400.
    """

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return the row, or None. An empty `?_to_field=`, on which Django fails, is ignored."""
        return super().get_object(request, object_id, from_field or None)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Return True for parameters of declared filters and for names that are not lookups.

        Django redirects a list with an unknown parameter, such as `utm_source`, to the unfiltered
        list.
        """
        values = [value] if request is None else [value, *request.GET.getlist(lookup)]
        if LOOKUP_SEP in lookup and any(params.is_day_out_of_range(text) for text in values):
            return False
        declared = self.list_filter if request is None else self.get_list_filter(request)
        if any(lookup in self._get_filter_parameters(item) for item in declared):
            return True
        fields = {"pk", *(field.name for field in self.opts.get_fields())}
        columns = {field.attname for field in self.opts.concrete_fields}
        return LOOKUP_SEP not in lookup and lookup not in fields | columns

    def _get_filter_parameters(self, list_filter: Any) -> Iterator[str]:
        """Yield the query parameters of one entry of `list_filter`."""
        names = getattr(list_filter, "parameter_names", None)
        name = getattr(list_filter, "parameter_name", None)
        if names or name:
            yield from names or [name]
            return
        path = list_filter[0] if isinstance(list_filter, list | tuple) else list_filter
        suffixes = ["", "__exact", "__isnull"]
        if isinstance(get_fields_from_path(self.model, path)[-1], DateField):
            suffixes += ["__gte", "__lt"]
        yield from (f"{path}{suffix}" for suffix in suffixes)


class MemoryAdmin(DeclaredLookupsMixin):
    """A model admin that wraps all its views in `secure_view`."""

    empty_value_display = "–"

    class Media:
        css = {"all": ["mastra_memory/review.css"]}

    def get_urls(self) -> list[URLPattern]:
        """Return the URL patterns with secured views."""
        patterns = super().get_urls()
        for pattern in patterns:
            pattern.callback = secure_view(pattern.callback)
        return patterns

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search for text without characters that PostgreSQL refuses.

        Django's autocompletion passes the term on unchecked.
        """
        return super().get_search_results(request, queryset, json_text.clean_text(search_term))

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Count related rows without naming them, since they may belong to hidden threads."""
        _nested, counts, perms_needed, protected = super().get_deleted_objects(objs, request)
        names = [escape_bidi_overrides(get_mask(request.user)(str(obj)))[:120] for obj in objs]
        if protected:
            label = ngettext("%d related row", "%d related rows", len(protected))
            protected = [label % len(protected)]
        return names, counts, perms_needed, protected


class ReadOnlyAdmin(MemoryAdmin):
    """A model admin without forms.

    Its pages name threads and messages by id. Django's own links would show their unmasked text.
    """

    @admin.display(description=_("thread"))
    def thread_link(self, row: Any) -> str:
        """Return a link to the thread of the row, or a dash."""
        if not row.thread_id:
            return "–"
        address = reverse_page("mastra_memory_thread_change", args=[quote(row.thread_id)])
        return format_html(
            '<a href="{}"><bdi>{}</bdi></a>', address, escape_bidi_overrides(row.thread_id)
        )

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: rows are read-only here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: rows are read-only here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: rows are read-only here."""
        return False
