"""Search for users who see masked text, without revealing what the mask hides.

The index contains the stored texts. A match counts only if the query also matches the masked text.
Queries cannot exclude words (the database function `mastra_memory_spaced` removes every dash), so a
match then reveals nothing that the masked text does not show.
"""

import secrets
from collections.abc import Container, Mapping, Sequence

from mastra_memory.content.redaction import Mask, keep_text, replace_placeholders
from mastra_memory.review import queries

INDEXED_CHARACTERS = 100_000
"""Characters of a message that the index covers."""
MAX_MASKED_CHARACTERS = 3_000_000
"""Characters that one search masks. Matches in texts beyond this sum are dropped."""


def filter_readable_messages(
    message_ids: Sequence[str], words: str, language: str, mask: Mask
) -> Container[str]:
    """Return the ids of those messages that still contain the words after masking.

    All stored messages must match. `language` is a text search configuration of PostgreSQL.
    """
    if mask is keep_text:
        return frozenset(message_ids)
    texts = queries.load_texts(
        message_ids,
        message_characters=INDEXED_CHARACTERS,
        total_characters=MAX_MASKED_CHARACTERS,
    )
    return filter_readable_texts(texts, words, language, mask)


def filter_readable_texts(
    texts: Mapping[str, str], words: str, language: str, mask: Mask
) -> frozenset[str]:
    """Return the keys of those texts that still contain the words after masking.

    All unmasked texts must match.
    """
    if mask is keep_text:
        return frozenset(texts)
    masked = {key: mask(text) for key, text in texts.items()}
    changed = {key: text for key, text in masked.items() if text != texts[key]}
    if not changed:
        return frozenset(texts)
    # Placeholders such as `[email]` are replaced by a random word, so that a search for `email`
    # does not find them and phrases do not match across them.
    gap = f" {secrets.token_hex(12)} "
    without_placeholders = [replace_placeholders(text, gap) for text in changed.values()]
    matching = queries.list_texts_with_words(list(changed), without_placeholders, words, language)
    return frozenset(texts.keys() - changed.keys()).union(matching)
