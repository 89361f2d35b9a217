"""Make the vectors that rows ask for: take some requests, embed, store.

Nothing is locked while an embedder works; a lease is renewed. A worker whose claim was taken over,
or whose message has another text by then, discards its vectors.
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
"""Messages taken at a time."""
PROBE_TEXT = "hello"


@dataclass(frozen=True, slots=True)
class MessageVectors:
    """The vectors of one message."""

    claimed: ClaimedMessage
    vectors: Sequence[Vector]
    tokens: int


Refusal = tuple[ClaimedMessage, str]


def embed_pending(*, seconds: float) -> tuple[int, bool]:
    """Embed what is due, in batches, for about so long.

    Returns how many messages were embedded, and whether more is due. Several processes may do
    this at once; none takes what another has taken. Failures are noted in the rows.
    """
    done = 0
    give_up = time.monotonic() + seconds
    for model in queue.list_due_models():
        if not _check_model_loads(model):
            continue
        taken = BATCH_SIZE
        while taken == BATCH_SIZE:
            if time.monotonic() > give_up:
                return done, True
            taken, stored = embed_batch(model)
            done += stored
            sql.clear_query_log()
    return done, False


def _check_model_loads(model: str) -> bool:
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
    """Embed up to `limit` messages. Returns how many were taken, and how many were embedded.

    See `queue.claim_messages` for `scope`. Raises `InvalidInput` and `ProviderRefused` if the
    embedder cannot be loaded.
    """
    claim = uuid.uuid4()
    taken = queue.claim_messages(model, claim, limit, scope)
    if not taken:
        return 0, 0
    message_ids = [one.message_id for one in taken]
    with leases.keep_renewing(lambda: queue.extend_lease(claim, message_ids)):
        made, refused = _embed_with_retries(model, taken, timeout)
    stored = _store_vectors(model, claim, made) if made else []
    for one, reason in refused:
        queue.mark_failed(claim, [one.message_id], reason)
    if len(stored) + len(refused) < len(taken):
        queue.release_claim(claim)
    _record_usage(model, stored)
    return len(taken), len(stored)


def _embed_with_retries(
    model: str, taken: Sequence[ClaimedMessage], timeout: float | None
) -> tuple[list[MessageVectors], list[Refusal]]:
    """The vectors of the messages, and those for which there are none, with the reason.

    When an embedder refuses a batch but takes a harmless text, the batch is halved until what it
    refuses stands alone.
    """
    limit = embedder.get_embedder(model).passage_bytes
    cut = [passages.split_into_passages(one.text, limit) for one in taken]
    try:
        texts = [passage for found in cut for passage in found]
        made = embedder.embed_passages(model, texts, timeout=timeout)
    except ProviderUnavailable as error:
        return [], [(one, str(error)) for one in taken]
    except ProviderRefused as error:
        if len(taken) == 1 or not _accepts_probe_text(model, timeout):
            return [], [(one, str(error)) for one in taken]
        middle = len(taken) // 2
        halves = (taken[:middle], taken[middle:])
        first, second = (_embed_with_retries(model, half, timeout) for half in halves)
        return first[0] + second[0], first[1] + second[1]
    vectors = iter(made.vectors)
    sizes = [sum(map(len, found)) for found in cut]
    return [
        MessageVectors(
            one, [next(vectors) for _ in found], _split_tokens(made.tokens, size, sum(sizes))
        )
        for one, found, size in zip(taken, cut, sizes, strict=True)
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
    model: str, claim: uuid.UUID, made: Sequence[MessageVectors]
) -> list[MessageVectors]:
    """Replace the vectors and drop the requests that are still ours. Returns which were.

    The messages are held meanwhile, so that no text can change between the look and the write; a
    message that somebody else holds is left for another time.
    """
    with routing.atomic():
        found = sql.fetch_all(
            _TAKE_OVER,
            [
                [one.claimed.message_id for one in made],
                [one.claimed.text_hash for one in made],
                *(model, claim, model),
            ],
        )
        owners = {cells[0]: cells for cells in found}
        stored = [one for one in made if one.claimed.message_id in owners]
        rows = [
            (*owners[one.claimed.message_id], place, len(vector), embedder.format_vector(vector))
            for one in stored
            for place, vector in enumerate(one.vectors)
            if embedder.compute_squared_norm(vector) > 0
        ]
        if rows:
            sql.execute(_INSERT, [model, *map(list, zip(*rows, strict=True))])
    return stored


_TAKE_OVER = """
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
_INSERT = """
    INSERT INTO mastra_memory_messageembedding
        (message_id, thread_id, resource_id, text_hash, passage, dimensions, embedding, model)
    SELECT i.*, %s FROM unnest(%s::text[], %s::text[], %s::text[], %s::bytea[], %s::smallint[],
        %s::smallint[], %s::vector[]) AS i"""


def _record_usage(model: str, stored: Sequence[MessageVectors]) -> None:
    """Note what a provider charged for, thread by thread."""
    spent: dict[str, int] = {}
    for one in stored:
        if one.tokens:
            spent[one.claimed.thread_id] = spent.get(one.claimed.thread_id, 0) + one.tokens
    for thread_id, tokens in spent.items():
        usage.record_usage(
            ModelUsage.Purpose.EMBEDDING, model, input_tokens=tokens, thread_id=thread_id
        )
