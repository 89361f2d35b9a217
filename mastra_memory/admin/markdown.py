"""Text of strangers as safe HTML: Markdown rendered without raw HTML, then cleaned once more."""

import re
from functools import cache
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

LONGEST_CODE = 20_000
TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6",
    "hr", "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead",
    "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "ol": {"start"},
    "pre": {"class"},
    "span": {"class"},
}
_OVERRIDES = {ord(char): f"[U+{ord(char):04X}]" for char in "\u202a\u202b\u202d\u202e\x00"}
_CLASS = re.compile(r"[a-z][a-z0-9-]{0,20}")


def harmless(text: str) -> str:
    """The text with characters that turn the writing direction around made visible."""
    return text.translate(_OVERRIDES)


def render(text: str) -> SafeString:
    """Markdown as HTML that holds no script, style, frame, form, image or odd link."""
    return _clean(_parser().render(harmless(text)))


def marked(passage: str) -> SafeString:
    """A passage with `<mark>` around found words; every other tag is dropped."""
    return mark_safe(nh3.clean(harmless(passage), tags={"mark"}))  # cleaned on this line


def _clean(html: str) -> SafeString:
    cleaned = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_kept,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return mark_safe(cleaned)  # cleaned on the line before


def _kept(tag: str, name: str, value: str) -> str | None:
    """Only the classes of highlighted code; only absolute links."""
    if name == "class":
        names = [word for word in value.split() if _CLASS.fullmatch(word)]
        return " ".join(names) or None
    if name == "href" and not value.lower().startswith(("http://", "https://", "mailto:")):
        return None
    return value


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "highlight": _highlighted})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image_as_link)
    return parser


def _highlighted(code: str, language: str, _attributes: str) -> str:
    """Colours for code whose language is named; without one it is plain."""
    if not language or len(code) > LONGEST_CODE:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return escape(code)
    return highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="hl-"))


def _image_as_link(self: RendererHTML, tokens: Any, index: int, options: Any, env: Any) -> str:
    """A picture in a text lies elsewhere: loading it would tell its owner who reads here."""
    token = tokens[index]
    address, label = str(token.attrs.get("src", "")), token.content or token.attrs.get("src", "")
    return f'<a href="{escape(address)}">🖼 {escape(label)}</a>'
