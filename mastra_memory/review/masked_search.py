"""Search for users who see masked text, without revealing what the mask hides.

The index contains the stored texts. A match counts only if the masked text meets the query, and
whether an excluded word occurs is decided by the masked text alone. So for a word that is masked,
the result is the same as for a word that does not occur.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence

from mastra_memory.content.redaction import (
    MAX_MATCH_CHARS,
    Mask,
    keep_text,
    replace_placeholders,
)
from mastra_memory.review import queries
from mastra_memory.search import fields, words
from mastra_memory.search.fields import MAX_FIELD_CHARACTERS, MessageWords

INDEXED_CHARACTERS = words.MAX_CHARACTERS
"""Characters of a message that the index covers."""
MAX_MASKED_BYTES = 3_000_000
"""How much text and content one search masks. Matches beyond this sum are dropped."""


def find_readable_matches(
    message_ids: Sequence[str], conditions: Sequence[str], mask: Mask
) -> list[set[str]]:
    """Return for each condition the ids of the messages that meet it after masking.

    Args:
        message_ids: The messages, the most important ones first.
        conditions: Texts of a `tsquery`.
        mask: The mask of the user.
    """
    rows = queries.load_searched_texts(
        message_ids, characters=INDEXED_CHARACTERS, total_bytes=MAX_MASKED_BYTES
    )
    apply = _build_mask(mask)
    texts = {pk: fields.split_message(text, content, mask=apply) for pk, text, content in rows}
    return _match(texts, conditions)


def filter_readable_messages(
    message_ids: Sequence[str], condition: str | None, mask: Mask
) -> Collection[str]:
    """Return the ids of those messages that meet a condition after masking.

    All stored messages must meet it, except for its excluded words.
    """
    if mask is keep_text or condition is None or not message_ids:
        return frozenset(message_ids)
    [readable] = find_readable_matches(message_ids, [condition], mask)
    return readable


def filter_readable_texts(texts: Mapping[str, str], condition: str, mask: Mask) -> Collection[str]:
    """Return the keys of those texts that meet a condition after masking, as for messages."""
    if mask is keep_text or not texts:
        return texts.keys()
    [readable] = match_texts(texts, [condition], mask)
    return readable


def match_texts(texts: Mapping[str, str], conditions: Sequence[str], mask: Mask) -> list[set[str]]:
    """Return for each condition the keys of the texts that meet it after masking."""
    apply = _build_mask(mask)
    split = {key: MessageWords(words.normalize_words(apply(t)), "", "") for key, t in texts.items()}
    return _match(split, conditions)


def _build_mask(mask: Mask) -> Mask:
    """Return the mask with a random word in place of `[email]` and other placeholders.

    So a search for `email` does not find them, and phrases do not match across them.
    """
    gap = f" {secrets.token_hex(12)} "

    def apply(text: str) -> str:
        masked = replace_placeholders(mask(text), gap)
        # Longer values are cut when they are read. Then the last one may be incomplete, and no
        # pattern recognizes it.
        return masked if len(text) < MAX_FIELD_CHARACTERS else masked[:-MAX_MATCH_CHARS]

    return apply


def _match(texts: Mapping[str, MessageWords], conditions: Iterable[str]) -> list[set[str]]:
    conditions = list(conditions)
    matches: list[set[str]] = [set() for _ in conditions]
    for key, position in queries.list_matching_texts(texts, conditions):
        matches[position].add(key)
    return matches
