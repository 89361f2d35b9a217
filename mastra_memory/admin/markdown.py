"""Render untrusted text as safe HTML: Markdown without raw HTML, sanitized with nh3."""

import re
from functools import cache
from time import thread_time
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

MAX_TOKENS = 20_000
"""Tokens of one text. Without a limit, a table of 5 kB can produce 65,000 cells."""
RULES_PER_CHECK = 20
"""Number of parser rules that run between two checks of the clock."""
ALLOWED_TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6",
    "hr", "li", "ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead",
    "tr", "ul",
}  # fmt: skip
ALLOWED_ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "ol": {"start"},
}
_BIDI_OVERRIDES = {ord(char): f"[U+{ord(char):04X}]" for char in "\u202a\u202b\u202d\u202e\x00"}
_LANGUAGE_CLASS = re.compile(r"[a-z][a-z0-9-]{0,20}")


def escape_bidi_overrides(text: str) -> str:
    """Replace characters that override the text direction by their code, such as `[U+202E]`.

    With these characters a text can be made to look like another one.
    """
    return text.translate(_BIDI_OVERRIDES)


class TooComplex(Exception):
    """The text takes too long to render, or has too many blocks."""


class _Clock:
    """Raise `TooComplex` when the processor time for one text is used up."""

    def __init__(self, seconds: float) -> None:
        self.end = thread_time() + seconds
        self.calls = 0

    def check(self) -> None:
        self.calls += 1
        if self.calls % RULES_PER_CHECK == 0 and thread_time() > self.end:
            raise TooComplex


def render_markdown(text: str, *, seconds: float) -> SafeString:
    """Render Markdown as HTML that holds no script, style, frame, form, image or odd link.

    Code is not highlighted: the time that lexers need cannot be bounded.

    Raises:
        TooComplex: The text needs more processor time than `seconds`, or has too many blocks.
            Some inputs take time that grows with the square of their length.
    """
    return _clean(_make_parser().render(escape_bidi_overrides(text), {"clock": _Clock(seconds)}))


def render_highlights(passage: str) -> SafeString:
    """Return the passage as safe HTML. Only `<mark>` tags are kept."""
    return mark_safe(
        nh3.clean(escape_bidi_overrides(passage), tags={"mark"})
    )  # cleaned on this line


def _clean(html: str) -> SafeString:
    cleaned = nh3.clean(
        html,
        tags=ALLOWED_TAGS,
        attributes=ALLOWED_ATTRIBUTES,
        attribute_filter=_filter_attribute,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return mark_safe(cleaned)  # cleaned on the line before


def _filter_attribute(tag: str, name: str, value: str) -> str | None:
    """Keep classes that name a language, and absolute links."""
    if name == "class":
        names = [word for word in value.split() if _LANGUAGE_CLASS.fullmatch(word)]
        return " ".join(names) or None
    if name == "href" and not value.lower().startswith(("http://", "https://", "mailto:")):
        return None
    return value


@cache
def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image_as_link)
    # These rules match nothing. The parser tries them at every block and every character.
    parser.block.ruler.before("table", "clock", _check_block, {"alt": _BLOCK_PARENTS})
    parser.inline.ruler.before("text", "clock", _check_inline)
    parser.core.ruler.after("block", "count", _check_count)
    return parser


_BLOCK_PARENTS = ["paragraph", "reference", "blockquote", "list"]


def _check_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    state.env["clock"].check()
    return False


def _check_inline(state: StateInline, silent: bool) -> bool:
    state.env["clock"].check()
    return False


def _check_count(state: StateCore) -> None:
    if len(state.tokens) > MAX_TOKENS:
        raise TooComplex


def _image_as_link(self: RendererHTML, tokens: Any, index: int, options: Any, env: Any) -> str:
    """Render an image as a link. Loading it would reveal the reader to the image's host."""
    token = tokens[index]
    address, label = str(token.attrs.get("src", "")), token.content or token.attrs.get("src", "")
    return f'<a href="{escape(address)}">🖼 {escape(label)}</a>'
