"""Replace the citation markers in ChatGPT's texts with links.

ChatGPT writes a citation as a marker of private-use characters, such as U+E200 `cite` U+E202
`turn0search1` U+E201, and older models as `【4†source】`. The metadata of the message contains the
pages to which the markers refer.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mastra_memory.importers import coercion
from mastra_memory.importers.conversation import PartDict, build_source_part

# The text between the ends of a mark cannot contain another beginning, so matching is linear.
_MARK = re.compile("\ue200([^\ue200\ue201]*)\ue201")
_OLD_MARK = re.compile(r"【(?:(\d{1,9})(?::(\d{1,9}))?†[^【】\n]*|turn\d+[a-z]+\d+)】", re.ASCII)
_RESULT_ID = re.compile(r"turn(\d{1,9})([a-z_]+)(\d{1,9})", re.ASCII)
_STRAY_MARK = re.compile("\ue200[a-z_]+\ue202[\\w\ue202]*|[\ue200-\ue206]")
"""The rest of a mark whose beginning or end is missing."""

_ResultId = tuple[int, str, int]
"""The turn, the kind and the index of a search result, as in `turn0search1`."""


@dataclass(frozen=True, slots=True)
class _Page:
    """A web page, or an uploaded file without an address."""

    title: str
    url: str

    def format_link(self) -> str:
        """Return a Markdown link; only the title of a page without an address."""
        title = " ".join(self.title.split()) or self.url
        if not self.url:
            return title
        label = re.sub(r"([\\\[\]])", r"\\\1", title)
        needs_brackets = re.search(r"[\s()<>]", self.url)
        url = re.sub(r"[\s<>]", _quote, self.url)
        return f"[{label}](<{url}>)" if needs_brackets else f"[{label}]({url})"


def _quote(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def resolve_citations(
    parts: Sequence[PartDict], metadata: Mapping[str, Any], role: str
) -> list[PartDict]:
    """Return the parts with links instead of marks, followed by a source part for each page.

    A mark without a page is removed.

    Args:
        parts: The parts of a message.
        metadata: The metadata of the message, with `content_references` and `citations`.
        role: The role of the message. Markers of the old style are replaced only in messages of the
            assistant: in tool results, the brackets enclose the titles of pages. Single private-use
            characters are kept in messages of users, who may type them.
    """
    citations = _Citations(metadata, role)
    resolved: list[PartDict] = []
    for part in parts:
        key = part["type"] if part["type"] in ("text", "reasoning") else ""
        if not key:
            resolved.append(part)
        elif (text := citations.replace_marks(part[key])) == part[key]:
            resolved.append(part)
        elif text.strip():
            details = {"details": [{"type": "text", "text": text}]} if key == "reasoning" else {}
            resolved.append({**part, key: text, **details})
    sources = {page.url or page.title: page for page in citations.pages}
    return [*resolved, *(build_source_part(page.url, page.title) for page in sources.values())]


class _Citations:
    """The pages that the marks of one message stand for."""

    def __init__(self, metadata: Mapping[str, Any], role: str) -> None:
        references = coercion.to_mappings(metadata.get("content_references"))
        self._citations = coercion.to_mappings(metadata.get("citations"))
        self._role = role
        self._replacements = dict(map(_read_reference, references))
        """The text that replaces a mark, by the text of the mark."""
        self._placed = list(_iter_placed(references, self._citations))
        """The span and the links of each entry that does not say which marker it belongs to."""
        self._results = dict(_iter_results(metadata))
        self.pages = [
            *(page for reference in references for page in _iter_pages(reference)),
            *filter(None, map(_read_citation, self._citations)),
        ]

    def replace_marks(self, text: str) -> str:
        """Return the text with links instead of marks."""
        self._place_marks(list(_MARK.finditer(text)))
        if self._role == "assistant" and "【" in text:
            text = self._replace_old_marks(text)
        text = _replace(_MARK, text, self._resolve)
        return text if self._role == "user" else _STRAY_MARK.sub("", text)

    def _place_marks(self, marks: Sequence[re.Match[str]]) -> None:
        """Find the replacements of marks by their positions, or by their order."""
        waiting = {mark[0]: mark.span() for mark in marks if not self._resolve(mark)}
        by_position = dict(self._placed)
        in_order = [text for _, text in self._placed] if len(waiting) == len(self._placed) else []
        for index, (mark, span) in enumerate(waiting.items()):
            if replacement := by_position.get(span) or "".join(in_order[index : index + 1]):
                self._replacements[mark] = replacement

    def _resolve(self, mark: re.Match[str]) -> str:
        if replacement := self._replacements.get(mark[0]):
            return replacement
        kind, _, value = mark[1].partition("\ue202")
        if kind == "entity":  # its value is a list such as ["city","Paris","capital of France"]
            names = coercion.to_texts(coercion.parse_json(value))
            return names[1] if len(names) > 1 else ""
        ids = (_parse_result_id(*match.groups()) for match in _RESULT_ID.finditer(value))
        return _format_pages(self._results[key] for key in ids if key in self._results)

    def _replace_old_marks(self, text: str) -> str:
        """Replace marks by the citation with the same position, numbers or order."""
        marks = list(_OLD_MARK.finditer(text))
        in_order = len(marks) == len(self._citations)
        by_position = {
            _read_span(citation, "start_ix", "end_ix"): citation for citation in self._citations
        }
        pages: dict[int, _Page | None] = {}
        for index, mark in enumerate(marks):
            citation = by_position.get(mark.span()) or self._find_citation(mark)
            if citation is None and in_order:
                citation = self._citations[index]
            pages[mark.start()] = _read_citation(citation) if citation else None

        def resolve(mark: re.Match[str]) -> str:
            page = pages[mark.start()]
            return _format_pages([page]) if page else ""

        return _replace(_OLD_MARK, text, resolve)

    def _find_citation(self, mark: re.Match[str]) -> Mapping[str, Any] | None:
        """Return the citation that has the numbers of a mark, such as `【3:0†source】`."""
        numbers = [None if number is None else int(number) for number in mark.groups()]
        for citation in self._citations:
            extra = coercion.to_mapping(coercion.to_mapping(citation.get("metadata")).get("extra"))
            if numbers == [extra.get("cited_message_idx"), extra.get("search_result_idx")]:
                return citation
        return None


def _replace(pattern: re.Pattern[str], text: str, resolve: Callable[[re.Match[str]], str]) -> str:
    """Replace matches with links, each after a space; remove those without a link.

    A space before a mark that is removed is removed too.
    """
    pieces: list[str] = []
    end = 0
    for match in pattern.finditer(text):
        before, replacement = text[end : match.start()], resolve(match)
        is_link = replacement.startswith("(")
        if not replacement:
            before = before.rstrip(" ")
        last = before or (pieces[-1] if pieces else "")
        gap = " " if is_link and last and not last[-1].isspace() else ""
        pieces += before, gap + replacement
        end = match.end()
    return "".join(pieces) + text[end:]


def _read_reference(reference: Mapping[str, Any]) -> tuple[str, str]:
    """Return the mark of an entry of `content_references`, and the text that replaces it."""
    replacement = _format_pages(_iter_pages(reference)) or coercion.to_text(reference.get("alt"))
    return coercion.to_text(reference.get("matched_text")).strip(), replacement


def _iter_placed(
    references: Sequence[Mapping[str, Any]], citations: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the position and the links of each entry that does not name its mark."""
    for reference in references:
        links = _format_pages(_iter_pages(reference))
        if links and not coercion.to_text(reference.get("matched_text")):
            yield _read_span(reference, "start_idx", "end_idx"), links
    for citation in citations:
        if page := _read_citation(citation):
            yield _read_span(citation, "start_ix", "end_ix"), _format_pages([page])


def _read_span(value: Mapping[str, Any], start: str, end: str) -> tuple[int, int]:
    return coercion.to_int(value.get(start)), coercion.to_int(value.get(end))


def _iter_pages(reference: Mapping[str, Any]) -> Iterator[_Page]:
    """Yield the pages of an entry of `content_references`."""
    for key in ("items", "sources"):
        for item in coercion.to_mappings(reference.get(key)):
            yield from _read_page(item)
            for supporting in coercion.to_mappings(item.get("supporting_websites")):
                yield from _read_page(supporting)
    yield from _read_page(reference)


def _read_page(item: Mapping[str, Any]) -> Iterator[_Page]:
    title = _get_first_text(item, "title", "attribution", "name")
    url = coercion.to_text(item.get("url"))
    if url.startswith(("http://", "https://")):
        yield _Page(title, url)
    elif item.get("type") == "file" and title:
        yield _Page(title, "")


def _read_citation(citation: Mapping[str, Any]) -> _Page | None:
    """Return the page of an entry of `citations`."""
    return next(_read_page(coercion.to_mapping(citation.get("metadata"))), None)


def _iter_results(metadata: Mapping[str, Any]) -> Iterator[tuple[_ResultId, _Page]]:
    """Yield the search result id and the page of each search result in the metadata."""
    for group in coercion.to_mappings(metadata.get("search_result_groups")):
        for entry in coercion.to_mappings(group.get("entries")):
            for page in _read_page(entry):
                yield _read_result_id(coercion.to_mapping(entry.get("ref_id"))), page
    for reference in coercion.to_mappings(metadata.get("content_references")):
        for item in [reference, *coercion.to_mappings(reference.get("items"))]:
            for page in _read_page(item):
                for result_id in coercion.to_mappings(item.get("refs")):
                    yield _read_result_id(result_id), page


def _read_result_id(value: Mapping[str, Any]) -> _ResultId:
    turn, index = coercion.to_int(value.get("turn_index")), coercion.to_int(value.get("ref_index"))
    return turn, coercion.to_text(value.get("ref_type")), index


def _parse_result_id(turn: str, kind: str, index: str) -> _ResultId:
    return int(turn), kind, int(index)


def _format_pages(pages: Iterable[_Page]) -> str:
    """Return links in parentheses, each page once; an empty text without pages."""
    links = dict.fromkeys(page.format_link() for page in pages)
    return f"({', '.join(links)})" if links else ""


def _get_first_text(item: Mapping[str, Any], *keys: str) -> str:
    texts = (coercion.to_text(item.get(key)).strip() for key in keys)
    return next((text for text in texts if text), "")
