"""Limits on how many messages, and how many bytes of them, one recall or search reads.

The options of an agent or a request may ask for more, as Mastra's may; they are lowered to
`MAX_RECALLED_MESSAGES` without an error. Pages end early at `MAX_PAGE_BYTES`.
"""

from collections.abc import Iterable
from dataclasses import replace

from mastra_memory import conf
from mastra_memory.options import SemanticRecallOptions
from mastra_memory.types import StoredMessage


def limit_history(count: int | None) -> int:
    """Return how many of a thread's newest messages to read; None asks for as many as allowed."""
    largest = conf.app_settings().MAX_RECALLED_MESSAGES
    return largest if count is None else min(count, largest)


def limit_matches(chosen: SemanticRecallOptions) -> SemanticRecallOptions:
    """Lower `top_k`, and then the windows, so that a recall reads no more than the limit."""
    largest = conf.app_settings().MAX_RECALLED_MESSAGES
    if chosen.top_k * (1 + chosen.before + chosen.after) <= largest:
        return chosen
    top_k = min(chosen.top_k, largest)
    before, after = limit_window(chosen.before, chosen.after, matches=top_k)
    return replace(chosen, top_k=top_k, before=before, after=after)


def limit_window(before: int, after: int, *, matches: int) -> tuple[int, int]:
    """Return `before` and `after`, lowered so that all windows stay within the limit."""
    side = max(conf.app_settings().MAX_RECALLED_MESSAGES // max(matches, 1) - 1, 0) // 2
    return min(before, side), min(after, side)


def page_bytes() -> int:
    """Return how many bytes of content end a page."""
    return conf.app_settings().MAX_PAGE_BYTES


def reaches_page_bytes(messages: Iterable[StoredMessage]) -> bool:
    """Return whether the messages fill a page in bytes, so that the page may have ended early."""
    limit = page_bytes()
    contents = [message.content_json for message in messages]
    # A character has at most four bytes. This spares encoding the text of an ordinary page.
    if 4 * sum(map(len, contents)) < limit:
        return False
    return sum(len(content.encode()) for content in contents) >= limit
