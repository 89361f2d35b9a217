"""Embed the messages in the queue: claim some, embed them, store the vectors.

No row is locked during the call of an embedder, which may take minutes. Instead, a claim is held
with a lease that is renewed (see `db.leases`). The vectors are discarded if another worker has
taken over the claim, or if the text of the message has changed.
"""

import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory.db import leases, routing, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.embedding import embedder, passages, queue
from mastra_memory.embedding.embedder import Vector
from mastra_memory.embedding.queue import ClaimedMessage
from mastra_memory.exceptions import MastraMemoryError, ProviderRefused, ProviderUnavailable
from mastra_memory.llm import usage
from mastra_memory.models import ModelUsage

BATCH_SIZE = 256
"""Messages that are claimed at a time."""
PROBE_TEXT = "hello"
"""A text that any embedder accepts, to distinguish a rejected text from an invalid API key."""


@dataclass(frozen=True, slots=True)
class MessageVectors:
    """The vectors of one message."""

    claimed: ClaimedMessage
    vectors: Sequence[Vector]
    tokens: int


Refusal = tuple[ClaimedMessage, str]


def embed_pending(*, seconds: float) -> tuple[int, bool]:
    """Embed due messages in batches, for about this many seconds.

    Several processes may run this at once; each claims its own messages. Failures are recorded in
    the queue.

    Returns:
        How many messages were embedded, and whether more are due.
    """
    done = 0
    deadline = time.monotonic() + seconds
    for model in queue.list_due_models():
        if not _can_load_model(model):
            continue
        claimed = BATCH_SIZE
        while claimed == BATCH_SIZE:
            if time.monotonic() > deadline:
                return done, True
            claimed, stored = embed_batch(model)
            done += stored
            sql.clear_query_log()
    return done, False


def _can_load_model(model: str) -> bool:
    try:
        embedder.get_embedder(model)
    except MastraMemoryError as error:
        queue.defer_model(model, str(error))
        return False
    return True


def embed_batch(
    model: str,
    *,
    limit: int = BATCH_SIZE,
    scope: sql.Where | None = None,
    timeout: float | None = None,
) -> tuple[int, int]:
    """Claim and embed up to `limit` messages.

    Args:
        model: The name of the embedder.
        limit: How many messages to claim.
        scope: See `queue.claim_messages`.
        timeout: See `embedder.embed_passages`.

    Returns:
        How many messages were claimed, and how many were embedded.

    Raises:
        InvalidInput: The name is not that of an embedder.
        ProviderRefused: The embedder cannot be loaded.
    """
    claim = uuid.uuid4()
    claimed = queue.claim_messages(model, claim, limit, scope)
    if not claimed:
        return 0, 0
    message_ids = [item.message_id for item in claimed]
    with leases.keep_renewing(lambda: queue.extend_lease(claim, message_ids)):
        embedded, refused = _embed_messages(model, claimed, timeout)
    stored = _store_vectors(model, claim, embedded) if embedded else []
    for item, reason in refused:
        queue.mark_failed(claim, [item.message_id], reason)
    if len(stored) + len(refused) < len(claimed):
        queue.release_claim(claim)
    _record_usage(model, stored)
    return len(claimed), len(stored)


def _embed_messages(
    model: str, claimed: Sequence[ClaimedMessage], timeout: float | None
) -> tuple[list[MessageVectors], list[Refusal]]:
    """Return the vectors, and the messages that could not be embedded, with the reasons.

    If an embedder rejects a batch but accepts `PROBE_TEXT`, the batch is halved again and again
    until only the rejected messages are left.
    """
    limit = embedder.get_embedder(model).passage_bytes
    passages_by_message = [passages.split_into_passages(item.text, limit) for item in claimed]
    try:
        texts = [passage for found in passages_by_message for passage in found]
        made = embedder.embed_passages(model, texts, timeout=timeout)
    except ProviderUnavailable as error:
        return [], [(item, str(error)) for item in claimed]
    except ProviderRefused as error:
        if len(claimed) == 1 or not _accepts_probe_text(model, timeout):
            return [], [(item, str(error)) for item in claimed]
        middle = len(claimed) // 2
        halves = (claimed[:middle], claimed[middle:])
        first, second = (_embed_messages(model, half, timeout) for half in halves)
        return first[0] + second[0], first[1] + second[1]
    vectors = iter(made.vectors)
    sizes = [sum(map(len, found)) for found in passages_by_message]
    return [
        MessageVectors(
            item, [next(vectors) for _ in found], _split_tokens(made.tokens, size, sum(sizes))
        )
        for item, found, size in zip(claimed, passages_by_message, sizes, strict=True)
    ], []


def _accepts_probe_text(model: str, timeout: float | None) -> bool:
    try:
        embedder.embed_passages(model, [PROBE_TEXT], timeout=timeout)
    except (ProviderRefused, ProviderUnavailable):
        return False
    return True


def _split_tokens(tokens: int, size: int, whole: int) -> int:
    return math.ceil(tokens * size / whole) if whole else 0


@retry_conflicts
def _store_vectors(
    model: str, claim: uuid.UUID, embedded: Sequence[MessageVectors]
) -> list[MessageVectors]:
    """Replace the vectors of messages that this worker still holds, and return the stored ones.

    The messages are locked, so that no text changes between the check and the write. A message
    that is locked by another transaction is skipped, and its request stays in the queue.
    """
    with routing.atomic():
        found = sql.fetch_all(
            _FINISH_REQUESTS_SQL,
            [
                [item.claimed.message_id for item in embedded],
                [item.claimed.text_hash for item in embedded],
                *(model, claim, model),
            ],
        )
        owners = {row[0]: row for row in found}
        stored = [item for item in embedded if item.claimed.message_id in owners]
        rows = [
            (
                *owners[item.claimed.message_id],
                position,
                len(vector),
                embedder.format_vector(vector),
            )
            for item in stored
            for position, vector in enumerate(item.vectors)
            if embedder.compute_squared_norm(vector) > 0
        ]
        if rows:
            sql.execute(_INSERT_VECTORS_SQL, [model, *map(list, zip(*rows, strict=True))])
    return stored


_FINISH_REQUESTS_SQL = """
    WITH live AS (
        SELECT m.id, m.thread_id, m.resource_id, i.hash FROM mastra_memory_message m
        JOIN unnest(%s::text[], %s::bytea[]) AS i(id, hash)
            ON m.id = i.id AND sha256(convert_to(m.text, 'UTF8')) = i.hash
        FOR SHARE OF m SKIP LOCKED),
    ours AS (
        DELETE FROM mastra_memory_embeddingrequest r USING live
        WHERE r.message_id = live.id AND r.model = %s AND r.claim = %s RETURNING live.*),
    old AS (
        DELETE FROM mastra_memory_messageembedding e USING ours
        WHERE e.message_id = ours.id AND e.model = %s)
    SELECT id, thread_id, resource_id, hash FROM ours"""
_INSERT_VECTORS_SQL = """
    INSERT INTO mastra_memory_messageembedding
        (message_id, thread_id, resource_id, text_hash, passage, dimensions, embedding, model)
    SELECT i.*, %s FROM unnest(%s::text[], %s::text[], %s::text[], %s::bytea[], %s::smallint[],
        %s::smallint[], %s::vector[]) AS i"""


def _record_usage(model: str, stored: Sequence[MessageVectors]) -> None:
    """Record the tokens that a provider charged for, for each thread."""
    spent: dict[str, int] = {}
    for item in stored:
        if item.tokens:
            spent[item.claimed.thread_id] = spent.get(item.claimed.thread_id, 0) + item.tokens
    for thread_id, tokens in spent.items():
        usage.record_usage(
            ModelUsage.Purpose.EMBEDDING, model, input_tokens=tokens, thread_id=thread_id
        )
