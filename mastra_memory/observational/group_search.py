"""Find groups of observations by a query, for the `recall` tool.

Mastra stores vectors of the groups. Here a group is found by the words of its text, and by its
messages: their vectors are stored anyway, and a message leads to its group. The best score of the
messages counts. So a group is found by meaning without a second index, and messages that are not
observed yet are found beside the groups.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mastra_memory.content import tokens
from mastra_memory.db import times
from mastra_memory.llm import sentences
from mastra_memory.models import MessageObservation, ObservationChunk
from mastra_memory.observational import groups
from mastra_memory.observational.commits import CURSOR_STEP

MAX_GROUPS = 500
"""How many groups are compared with the words of a query, the newest ones."""
WORDS_WEIGHT = 0.5
"""The score of the best match by words. The best match of the messages has the score 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFilter:
    """Which groups may be found."""

    resource_id: str
    scope: str
    """The scope of the records, `thread` or `resource`."""
    thread_id: str | None = None
    """Only groups of messages of this thread."""
    after: datetime | None = None
    """Only groups whose newest message is later than this."""
    before: datetime | None = None
    """Only groups whose newest message is earlier than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHit:
    """A group of observations that was found."""

    thread_id: str
    group_id: str
    range: str
    """The first and the last message that it was made of, `first:last`."""
    text: str
    """The observations as one line."""
    observed_at: datetime
    """The time of its newest message."""
    score: float
    message_ids: frozenset[str]

    @property
    def tokens(self) -> int:
        """The number of tokens of its text."""
        return tokens.get_token_counter().text(self.text)

    def format(self) -> str:
        """Return the group as the agent reads it."""
        observed = times.format_time(self.observed_at)
        return (
            f"Observations up to {observed}, made of the messages {self.range} of {self.thread_id}:"
            f"\n{self.text}"
        )


def search_groups(
    query: str, message_scores: Mapping[str, float], where: GroupFilter, *, limit: int
) -> list[GroupHit]:
    """Return the best groups, best first.

    Args:
        query: The words to look for.
        message_scores: The messages that match the query, with their scores.
        where: Which groups may be found.
        limit: The largest number of groups.
    """
    chunks = _list_chunks(list(message_scores), where)
    best = max(message_scores.values(), default=0.0) or 1.0
    by_message = _score_by_messages(chunks, message_scores)
    by_words = _score_by_words(query, [chunk.observations for chunk in chunks])
    hits = [
        _build_hit(chunk, by_message.get(chunk.pk, 0.0) / best + WORDS_WEIGHT * score)
        for chunk, score in zip(chunks, by_words, strict=True)
    ]
    found = [hit for hit in hits if hit.score > 0]
    return sorted(found, key=lambda hit: (-hit.score, hit.observed_at))[:limit]


def _list_chunks(message_ids: Sequence[str], where: GroupFilter) -> list[ObservationChunk]:
    """Return the groups of these messages, and the newest other ones."""
    allowed = (
        ObservationChunk.objects.activated()
        .filter(record__resource_id=where.resource_id, record__scope=where.scope)
        .exclude(observations="")
    )
    if where.thread_id is not None:
        allowed = allowed.filter(thread_id=where.thread_id)
    if where.after is not None:
        allowed = allowed.filter(last_observed_at__gt=where.after + CURSOR_STEP)
    if where.before is not None:
        allowed = allowed.filter(last_observed_at__lt=where.before + CURSOR_STEP)
    rows = MessageObservation.objects.filter(message_id__in=message_ids, scope=where.scope)
    matching = allowed.filter(pk__in=rows.values("chunk"))
    newest = allowed.order_by("-activated_at", "-position")[:MAX_GROUPS]
    return list({chunk.pk: chunk for chunk in (*matching, *newest)}.values())


def _score_by_messages(
    chunks: Sequence[ObservationChunk], message_scores: Mapping[str, float]
) -> dict[str, float]:
    """Return the best score of the messages of each group."""
    return {
        chunk.pk: max((message_scores.get(key, 0.0) for key in chunk.message_ids), default=0.0)
        for chunk in chunks
    }


def _score_by_words(query: str, texts: Sequence[str]) -> list[float]:
    """Return how much of the query each text contains, rare words counting more; at most 1."""
    wanted = {word for word in sentences.list_words(query) if not sentences.is_common(word)}
    found = [wanted.intersection(sentences.list_words(text)) for text in texts]
    frequencies = Counter(word for words in found for word in words)
    weights = {word: math.log(1 + len(texts) / frequencies[word]) for word in frequencies}
    total = sum(weights.values()) or 1.0
    return [sum(weights[word] for word in words) / total for words in found]


def _build_hit(chunk: ObservationChunk, score: float) -> GroupHit:
    text = groups.strip_group_tags(chunk.observations)
    return GroupHit(
        thread_id=chunk.thread_id or "",
        group_id=chunk.group_id or chunk.pk,
        range=chunk.range,
        text=re.sub(r"\s+", " ", text).strip(),
        observed_at=chunk.last_observed_at - CURSOR_STEP,
        score=score,
        message_ids=frozenset(chunk.message_ids),
    )
