"""Limit the number and the size of the messages that one recall or search reads.

Mastra has no such limits, so larger values in the options of an agent or a request are reduced to
`MAX_RECALLED_MESSAGES` without an error. Pages end early at `MAX_PAGE_BYTES`.
"""

from collections.abc import Iterable
from dataclasses import replace

from mastra_memory import conf
from mastra_memory.options import SemanticRecallOptions
from mastra_memory.types import StoredMessage


def limit_history(count: int | None) -> int:
    """Return how many of the newest messages to read. None means as many as allowed."""
    largest = conf.app_settings().MAX_RECALLED_MESSAGES
    return largest if count is None else min(count, largest)


def limit_matches(recall_options: SemanticRecallOptions) -> SemanticRecallOptions:
    """Reduce `top_k`, and then the windows, so that a recall does not exceed the limit."""
    largest = conf.app_settings().MAX_RECALLED_MESSAGES
    if recall_options.top_k * (1 + recall_options.before + recall_options.after) <= largest:
        return recall_options
    top_k = min(recall_options.top_k, largest)
    before, after = limit_window(recall_options.before, recall_options.after, matches=top_k)
    return replace(recall_options, top_k=top_k, before=before, after=after)


def limit_window(before: int, after: int, *, matches: int) -> tuple[int, int]:
    """Return `before` and `after`, lowered so that all windows stay within the limit."""
    side = max(conf.app_settings().MAX_RECALLED_MESSAGES // max(matches, 1) - 1, 0) // 2
    return min(before, side), min(after, side)


def get_max_page_bytes() -> int:
    """Return the number of bytes of content after which a page ends."""
    return conf.app_settings().MAX_PAGE_BYTES


def reaches_page_bytes(messages: Iterable[StoredMessage]) -> bool:
    """Return whether the messages reach the byte limit, so that the page may have ended early."""
    limit = get_max_page_bytes()
    contents = [message.content_json for message in messages]
    # A character has at most four bytes, so most pages need not be encoded to count them.
    if 4 * sum(map(len, contents)) < limit:
        return False
    return sum(len(content.encode()) for content in contents) >= limit
