"""Show complete texts as plain text, page by page. Other pages show only their beginning.

The cost of a page is bounded, however long the text is.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from mastra_memory.admin import access
from mastra_memory.admin.base import ReadOnlyAdmin, secure_view
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.urls import reverse_page
from mastra_memory.admin.working_memory_panel import parse_document
from mastra_memory.content import part_types
from mastra_memory.content.redaction import Mask, find_split_position
from mastra_memory.models import Message, ObservationalRecord
from mastra_memory.review import observations

PAGE_CHARACTERS = 100_000
MAX_PAGE_NUMBER = 100_000
MAX_INDENTED_DEPTH = 30
"""JSON that is nested more deeply is shown without indents."""
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " "}


@dataclass(frozen=True, slots=True)
class TextPage:
    """One page of a long text."""

    text: str
    number: int
    has_next: bool


def read_page(request: HttpRequest, texts: Iterable[str], mask: Mask) -> TextPage:
    """Return the page of the joined texts that `?page=` asks for. Raises `Http404`."""
    number = read_integer(request.GET.get("page", "1"), maximum=MAX_PAGE_NUMBER)
    if not number:
        raise Http404
    text = _join_beginning(texts, (number + 1) * PAGE_CHARACTERS)
    # Pages end where nothing is masked, so that no page shows half of a masked value.
    start = find_split_position(text, (number - 1) * PAGE_CHARACTERS, mask)
    end = find_split_position(text, number * PAGE_CHARACTERS, mask)
    if number > 1 and start >= len(text):
        raise Http404
    return TextPage(escape_bidi_overrides(mask(text[start:end])), number, end < len(text))


class PlainTextAdmin(ReadOnlyAdmin):
    """A model admin with a page that shows all texts of a row, at `<change page>/text/`.

    Subclasses set `text_heading` and override `iterate_texts`.
    """

    text_heading: Any

    def iterate_texts(self, request: HttpRequest, row: Any) -> Iterator[str]:
        """Yield the texts of a row, which are shown one after the other."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        """Return the URL patterns. Django's last pattern matches any path, so ours comes first."""
        view = secure_view(self.admin_site.admin_view(self.text_view))
        name = f"{self.opts.app_label}_{self.opts.model_name}_text"
        return [path("<path:object_id>/text/", view, name=name), *super().get_urls()]

    def text_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show one page of the texts."""
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            raise Http404
        change = f"{self.opts.app_label}_{self.opts.model_name}_change"
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": self.text_heading,
            "back": reverse_page(change, args=[quote(row.pk)]),
            "page": read_page(
                request, self.iterate_texts(request, row), access.get_mask(request.user)
            ),
        }
        return TemplateResponse(request, "admin/mastra_memory/plain_text.html", context)


def _join_beginning(texts: Iterable[str], limit: int) -> str:
    read: list[str] = []
    length = 0
    for text in texts:
        read.append(text)
        length += len(text)
        if length > limit:
            break
    return "".join(read)


def iterate_message_texts(message: Message) -> Iterator[str]:
    """Yield the content of a message as text. Files are described, not included."""
    for piece in part_types.iter_parts(message.content):
        yield from _iterate_piece_texts(piece)
        yield "\n\n"


def _iterate_piece_texts(piece: part_types.Part) -> Iterator[str]:
    match piece:
        case part_types.TextPart(text):
            yield text
        case part_types.ReasoningPart(text):
            yield f"[{_('Reasoning')}]\n"
            yield text
        case part_types.ToolCall():
            yield f"[{_('Tool call')}: {piece.name}, {piece.state}]\n"
            yield from iterate_json_texts(piece.args)
            yield "\n"
            if piece.error:
                yield piece.error
            else:
                yield from iterate_json_texts(piece.result)
        case part_types.FilePart():
            yield f"[{_('file')}: {piece.name} {piece.mime_type} {piece.address}]"
        case part_types.SourcePart(title, address):
            yield f"[{_('source')}: {title} {address}]"
        case part_types.UnknownPart(kind, value):
            yield f"[{kind}]\n"
            yield from iterate_json_texts(value)


def iterate_json_texts(value: Any) -> Iterator[str]:
    """Yield a JSON value as indented text, in slices, with escapes in strings resolved.

    Masks would not match values that contain escapes.
    """
    if value is None:
        return
    if isinstance(value, str):
        yield value
        return
    try:
        option = orjson.OPT_INDENT_2 if _is_shallow(value) else 0
        text = orjson.dumps(value, option=option).decode()
    except orjson.JSONEncodeError:
        text = repr(value)
    at = 0
    while at < len(text):
        end = at + PAGE_CHARACTERS
        while end < len(text) and end > at + 1 and text[end - 1] == "\\":
            end -= 1  # do not split an escape sequence
        yield _ESCAPE.sub(_unescape, text[at:end])
        at = end


def _is_shallow(value: Any) -> bool:
    """Return True if the value is nested at most `MAX_INDENTED_DEPTH` levels deep.

    Indenting multiplies the size of deeply nested JSON: 1 MB nested 250 levels deep grows to more
    than 100 MB.
    """
    level = [value]
    for _depth in range(MAX_INDENTED_DEPTH + 1):
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(item, dict | list)
        ]
        if not level:
            return True
    return False


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPED_CHARACTERS.get(code, code)


def iterate_memory_texts(content: str) -> Iterator[str]:
    """Yield the text of a working memory; JSON is indented as in `iterate_json_texts`."""
    value = parse_document(content)
    if value is None:
        yield content
    else:
        yield from iterate_json_texts(value)


def iterate_record_texts(record: ObservationalRecord, hidden: Collection[str]) -> Iterator[str]:
    """Yield the observations of a record, then its buffered reflection and chunks.

    `hidden` are ids of threads whose observations are left out.
    """
    for kind, text in observations.iterate_visible_texts(record, hidden):
        if kind == "reflection":
            yield f"\n\n[{_('prepared reflection')}]\n"
        elif kind != "observations":
            yield f"\n\n[{_('chunk')} {kind}]\n"
        yield text
