"""Reduce the parts of a context to a number of tokens: the option `maxContextTokens`.

The newest messages get a small share. The recalled messages, by their score, and the observations
share the rest: if both do not fit, observations get the larger part, because they say the same in
fewer tokens. What one part does not need goes to the others, at last to older messages.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from mastra_memory.content import message_text, tokens
from mastra_memory.context import log_selection
from mastra_memory.context.log_selection import LogQuery
from mastra_memory.context.token_counts import MessageCounter
from mastra_memory.recall import recent
from mastra_memory.types import StoredMessage

HISTORY_SHARE = 1 / 8
"""The share of the newest messages if there is anything else."""
RECALL_SHARE = 0.3
"""The share of the recalled messages in the rest if the log does not fit."""
MAX_RENDERED_RATIO = 1.5
"""If a log has more than this many times the tokens that are left, it cannot fit. It is then not
rendered to count its tokens."""
TOKENS_PER_QUOTE = 15
"""Tokens of the day, the time and the role of a message of another thread."""
TOKENS_PER_INTRODUCTION = 80
"""Tokens of the introduction to messages of other threads, and of its tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextParts:
    """The parts of a context that compete for its tokens."""

    thread_id: str
    history: Sequence[StoredMessage] = ()
    """In any order."""
    recalled: Sequence[StoredMessage] = ()
    """Best match first. They may be in the history, too."""
    log: str = ""
    counter: MessageCounter = field(default_factory=MessageCounter)


def fit_parts(
    parts: ContextParts,
    max_tokens: int,
    *,
    render: Callable[[str], str],
    query: Callable[[Sequence[StoredMessage]], LogQuery],
) -> ContextParts:
    """Return what fits into `max_tokens`.

    Args:
        parts: Everything that the context would have without a limit.
        max_tokens: An estimate, as `Context.tokens` is.
        render: Returns the text of a log in the prompt.
        query: Takes the included messages, and returns the query by which to choose observations.
    """
    budget = _Budget(max(max_tokens, 0), parts)
    newest_first = recent.group_tool_pairs(parts.history)
    is_shared = bool(parts.recalled or parts.log)
    newest = budget.take_newest(newest_first, HISTORY_SHARE if is_shared else 1.0)
    log_tokens = _count_log(parts.log, budget, render)
    recall_limit = budget.left - log_tokens
    if parts.log:
        recall_limit = max(recall_limit, int(budget.left * RECALL_SHARE))
    recalled = budget.take_recalled(_exclude(parts.recalled, newest), recall_limit)
    log = parts.log
    if log_tokens > budget.left:
        included = query([*recalled, *newest])
        log = log_selection.select_observations(log, budget.left, included, render=render)
        log_tokens = budget.counter.text(render(log)) if log else 0
    budget.left -= log_tokens
    taken = {message.id for message in (*recalled, *newest)}
    rest = [group for group in newest_first if taken.isdisjoint(m.id for m in group)]
    history = [*newest, *budget.take_newest(rest)]
    return ContextParts(
        thread_id=parts.thread_id,
        history=history,
        recalled=recalled,
        log=log,
        counter=parts.counter,
    )


def _exclude(
    messages: Iterable[StoredMessage], excluded: Iterable[StoredMessage]
) -> list[StoredMessage]:
    excluded_ids = {message.id for message in excluded}
    return [message for message in messages if message.id not in excluded_ids]


def _count_log(log: str, budget: "_Budget", render: Callable[[str], str]) -> int:
    """Return the tokens of the rendered log, or an estimate if it is much too long."""
    stored = budget.counter.text(log) if log else 0
    if stored > MAX_RENDERED_RATIO * budget.left:
        return stored
    return budget.counter.text(render(log)) if log else 0


class _Budget:
    """Tokens that are left, and what has been taken from them."""

    def __init__(self, max_tokens: int, parts: ContextParts) -> None:
        self.left = max_tokens
        self.counter = tokens.get_token_counter()
        self.message_counter = parts.counter
        self.thread_id = parts.thread_id
        self._has_quotes = False

    def take_newest(
        self, newest_first: Sequence[list[StoredMessage]], share: float = 1.0
    ) -> list[StoredMessage]:
        """Take groups without a gap, newest first, within a share of the tokens that are left.

        The newest group may exceed the share, but not half of the tokens.
        """
        limit = int(self.left * share)
        taken: list[StoredMessage] = []
        for group in newest_first:
            cost = sum(map(self.message_counter.count, group))
            if cost > limit and not (share < 1 and not taken and cost <= self.left / 2):
                break
            limit -= cost
            self.left -= cost
            taken += group
        return taken

    def take_recalled(self, best_first: Sequence[StoredMessage], limit: int) -> list[StoredMessage]:
        """Take the best messages that fit into `limit`."""
        taken: list[StoredMessage] = []
        for group in _group_recalled(best_first):
            cost = sum(map(self._count_recalled, group))
            if cost > limit:
                continue
            limit -= cost
            self.left -= cost
            taken += group
            self._has_quotes |= any(message.thread_id != self.thread_id for message in group)
        return taken

    def _count_recalled(self, message: StoredMessage) -> int:
        """Return the tokens of a message in the history, or of its text if it is quoted."""
        if message.thread_id == self.thread_id:
            return self.message_counter.count(message)
        introduction = 0 if self._has_quotes else TOKENS_PER_INTRODUCTION
        text = message_text.get_text(message.content)
        return self.counter.text(text) + TOKENS_PER_QUOTE + introduction


def _group_recalled(best_first: Sequence[StoredMessage]) -> list[list[StoredMessage]]:
    """Return groups of messages, best first. A tool call and its result are in the same group."""
    ranks = {message.id: rank for rank, message in enumerate(best_first)}
    return sorted(
        recent.group_tool_pairs(best_first),
        key=lambda group: min(ranks[message.id] for message in group),
    )
