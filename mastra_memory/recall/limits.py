"""Limits on how many messages one recall or search reads, whoever asks.

The options of an agent or a request may ask for more, as Mastra's may; they are lowered to these
limits without an error. `MAX_RECALLED_MESSAGES` is the limit.
"""

from dataclasses import replace

from mastra_memory import conf
from mastra_memory.options import SemanticRecall


def limit_history(count: int | None) -> int:
    """Return how many of a thread's newest messages are read; None asks for as many as allowed."""
    largest = conf.app_settings().MAX_RECALLED_MESSAGES
    return largest if count is None else min(count, largest)


def limit_matches(chosen: SemanticRecall) -> SemanticRecall:
    """Lower `top_k` first and then the windows, so that together they read no more than allowed."""
    largest = conf.app_settings().MAX_RECALLED_MESSAGES
    if chosen.top_k * (1 + chosen.before + chosen.after) <= largest:
        return chosen
    top_k = min(chosen.top_k, largest)
    before, after = limit_window(chosen.before, chosen.after, matches=top_k)
    return replace(chosen, top_k=top_k, before=before, after=after)


def limit_window(before: int, after: int, *, matches: int) -> tuple[int, int]:
    """Lower the neighbours of each of so many matches to what is allowed for all of them."""
    side = max(conf.app_settings().MAX_RECALLED_MESSAGES // max(matches, 1) - 1, 0) // 2
    return min(before, side), min(after, side)
