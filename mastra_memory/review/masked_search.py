"""Search for users who see masked text, without telling them what the mask hides.

The index holds the texts as they are stored. A hit counts only if the query also matches the
masked text. Queries have no negation (the database function `mastra_memory_spaced` removes every
dash), so a hit then says nothing that the masked text does not say itself.
"""

import secrets
from collections.abc import Container, Mapping, Sequence

from mastra_memory.content.redaction import Mask, keep_text, replace_placeholders
from mastra_memory.db import sql
from mastra_memory.search.queries import ALL_WORDS_QUERY

INDEXED_CHARACTERS = 100_000
"""Characters of a message that the index covers."""
MAX_MASKED_CHARACTERS = 3_000_000
"""Characters that one search masks to check its hits; what lies beyond is not found."""


def filter_readable_messages(
    message_ids: Sequence[str], words: str, language: str, mask: Mask
) -> Container[str]:
    """Return those of the messages in which the words are found after masking."""
    if mask is keep_text:
        return frozenset(message_ids)
    found = sql.fetch_all(
        """SELECT id, text FROM (
            SELECT m.id, left(m.text, %s) AS text,
                sum(least(length(m.text), %s)) OVER (ORDER BY w.position) AS characters
            FROM unnest(%s::text[]) WITH ORDINALITY AS w (id, position)
            JOIN mastra_memory_message m ON m.id = w.id) AS hits
        WHERE characters <= %s""",
        [INDEXED_CHARACTERS, INDEXED_CHARACTERS, list(message_ids), MAX_MASKED_CHARACTERS],
    )
    return filter_readable_texts(dict(found), words, language, mask)


def filter_readable_texts(
    texts: Mapping[str, str], words: str, language: str, mask: Mask
) -> frozenset[str]:
    """Return the keys of the texts in which the words are found after masking.

    The texts are known to match `words` unmasked.
    """
    if mask is keep_text:
        return frozenset(texts)
    masked = {key: mask(text) for key, text in texts.items()}
    changed = {key: text for key, text in masked.items() if text != texts[key]}
    if not changed:
        return frozenset(texts)
    # No query can contain this word. Neither `email` nor a phrase across the gap may match.
    gap = f" {secrets.token_hex(12)} "
    found = sql.fetch_all(
        f"""SELECT t.key FROM unnest(%s::text[], %s::text[]) AS t (key, words)
        WHERE mastra_memory_words(%s::regconfig, t.words) @@ {ALL_WORDS_QUERY}""",
        [
            list(changed),
            [replace_placeholders(text, gap) for text in changed.values()],
            language,
            language,
            words,
        ],
    )
    return frozenset(texts.keys() - changed.keys()) | {key for (key,) in found}
