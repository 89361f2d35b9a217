"""Bound the work of showing stored text on one page.

Texts are untrusted, and a page shows many of them. Limits for each text do not add up to a limit
for the page, so every page creates one `RenderBudget` and passes it to all functions that show
text. Text that does not fit is cut or left out, and the page links to all of it as plain text
(see `plain_text`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time
from typing import Any

from django.utils.safestring import SafeString

from mastra_memory.admin.markdown import TooComplex, escape_bidi_overrides, render_markdown
from mastra_memory.content.redaction import Mask, mask_beginning, mask_json

MAX_MARKDOWN_CHARACTERS = 20_000
"""Longer texts are never rendered as Markdown."""
MAX_TEXT_SECONDS = 0.3
"""Processor time for one text, so that one of them cannot use up the budget of the page."""
BEGINNING_CHARACTERS = 4_000
"""Length of the beginning shown of a text that is not rendered."""
MAX_JSON_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Prose:
    """A text as the page shows it: `html`, or else the beginning of it in `text`."""

    html: SafeString | str = ""
    text: str = ""
    size: int = 0
    """Characters of the whole text."""
    is_cut: bool = False
    """True if a part of the text is missing on the page."""


@dataclass(slots=True)
class RenderBudget:
    """What one page may still spend. The defaults suit a page that people scroll through."""

    seconds: float = 2.0
    """Processor time for masking, Markdown and differences. Texts that come later are plain."""
    characters: int = 1_000_000
    """Characters of HTML, text and JSON. What comes later is left out."""
    blocks: int = 2_000
    """Parts of messages and other texts. What comes later is left out."""

    @property
    def is_spent(self) -> bool:
        """Return whether nothing more may be rendered."""
        return self.characters <= 0 or self.blocks <= 0

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Charge the processor time of the body; waiting for other threads is free."""
        started = thread_time()
        try:
            yield
        finally:
            self.seconds -= thread_time() - started

    def take_block(self) -> bool:
        """Charge one block. Return False, and charge nothing, if the budget is spent."""
        if self.is_spent:
            return False
        self.blocks -= 1
        return True

    def render_prose(self, text: str, mask: Mask) -> Prose:
        """Show a text as Markdown if the budget allows it, else the beginning of it as it is."""
        if not self.take_block():
            return Prose(size=len(text), is_cut=bool(text))
        html = self._markdown(text, mask)
        if html is not None:
            return Prose(html=html, size=len(text))
        beginning, is_cut = self.render_text(text, mask, BEGINNING_CHARACTERS)
        return Prose(text=beginning, size=len(text), is_cut=is_cut)

    def _markdown(self, text: str, mask: Mask) -> SafeString | None:
        if len(text) > min(MAX_MARKDOWN_CHARACTERS, self.characters) or self.seconds <= 0:
            return None
        with self.measure():
            try:
                html = render_markdown(mask(text), seconds=min(self.seconds, MAX_TEXT_SECONDS))
            except TooComplex:
                return None
        if len(html) > self.characters:
            return None
        self.characters -= len(html)
        return html

    def render_text(self, text: str, mask: Mask, limit: int) -> tuple[str, bool]:
        """Return the masked beginning of a text, and whether anything is missing."""
        limit = max(0, min(limit, self.characters))
        with self.measure():
            shown = escape_bidi_overrides(mask_beginning(text, mask, limit))
        self.characters -= len(shown)
        return shown, len(text) > limit

    def render_json(self, value: Any, mask: Mask) -> tuple[str, bool]:
        """Return the beginning of a JSON value, indented and masked, and whether it is cut.

        A string is returned as it is, without quotes.
        """
        if value is None:
            return "", False
        if isinstance(value, str):
            return self.render_text(value, mask, MAX_JSON_CHARACTERS)
        limit = max(0, min(MAX_JSON_CHARACTERS, self.characters))
        with self.measure():
            pruned = _JsonPruner(limit, mask)
            shown, is_cut = _indent_json(mask_json(pruned.prune(value), mask), limit)
        self.characters -= len(shown)
        return escape_bidi_overrides(shown), is_cut or pruned.is_cut


class _JsonPruner:
    """Copies the beginning of a JSON value, so that masking and writing it cost little."""

    def __init__(self, limit: int, mask: Mask) -> None:
        self.left, self.mask = limit, mask
        self.is_cut = False

    def prune(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            pruned = {}
            for name, item in value.items():
                if self.left <= 0:
                    self.is_cut = True
                    break
                pruned[self._text(name)] = self.prune(item)
            return pruned
        if isinstance(value, list):
            items = []
            for item in value:
                if self.left <= 0:
                    self.is_cut = True
                    break
                items.append(self.prune(item))
            return items
        self.left -= 2
        return value

    def _text(self, text: str) -> str:
        # Every value takes at least two characters: empty ones must not be free.
        limit = max(self.left, 0)
        self.left -= len(text) + 2
        if len(text) <= limit:
            return text
        self.is_cut = True
        return mask_beginning(text, self.mask, limit) + "…"


def _indent_json(value: Any, limit: int) -> tuple[str, bool]:
    """Return indented JSON with at most `limit` characters, and whether it is cut.

    Writing stops at the limit, because deep nesting makes the indentation very long.
    """
    written: list[str] = []
    length = 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
        written.append(piece)
        length += len(piece)
        if length > limit:
            return "".join(written)[:limit], True
    return "".join(written), False
