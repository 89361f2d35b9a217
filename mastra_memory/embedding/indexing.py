"""Make the vectors that rows ask for: take some requests, embed, store.

Nothing is locked while an embedder works; a lease is renewed. A worker whose claim was taken over,
or whose message has another text by then, discards its vectors.
"""

import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from mastra_memory.db import leases, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.embedding import embedder, passages, queue
from mastra_memory.embedding.embedder import Vector
from mastra_memory.embedding.queue import Claimed
from mastra_memory.exceptions import MastraMemoryError, ProviderRefused, ProviderUnavailable
from mastra_memory.llm import usage
from mastra_memory.models import ModelUsage

BATCH = 256
"""Messages taken at a time."""
CANARY = "hello"


@dataclass(frozen=True, slots=True)
class Made:
    """The vectors of one message."""

    claimed: Claimed
    vectors: Sequence[Vector]
    tokens: int


Refusal = tuple[Claimed, str]


def embed_pending(*, seconds: float) -> tuple[int, bool]:
    """Embed what is due, in batches, for about so long.

    Returns how many messages were embedded, and whether more is due. Several processes may do
    this at once; none takes what another has taken. Failures are noted in the rows.
    """
    done = 0
    give_up = time.monotonic() + seconds
    for model in queue.models_due():
        if not _is_loadable(model):
            continue
        taken = BATCH
        while taken == BATCH:
            if time.monotonic() > give_up:
                return done, True
            taken, stored = embed_batch(model)
            done += stored
            sql.forget_statements()
    return done, False


def _is_loadable(model: str) -> bool:
    try:
        embedder.get_embedder(model)
    except MastraMemoryError as error:
        queue.put_off(model, str(error))
        return False
    return True


def embed_batch(
    model: str,
    *,
    limit: int = BATCH,
    scope: sql.Where | None = None,
    timeout: float | None = None,
) -> tuple[int, int]:
    """Embed up to `limit` messages. Returns how many were taken, and how many were embedded.

    See `requests.take` for `scope`. Raises `InvalidInput` and `ProviderRefused` for an embedder
    that cannot be loaded.
    """
    claim = uuid.uuid4()
    taken = queue.take(model, claim, limit, scope)
    if not taken:
        return 0, 0
    message_ids = [one.message_id for one in taken]
    with leases.renewed(lambda: queue.extend_lease(claim, message_ids)):
        made, refused = _embed(model, taken, timeout)
    stored = _store(model, claim, made) if made else []
    for one, reason in refused:
        queue.put_back(claim, [one.message_id], reason)
    if len(stored) + len(refused) < len(taken):
        queue.release(claim)
    _record_usage(model, stored)
    return len(taken), len(stored)


def _embed(
    model: str, taken: Sequence[Claimed], timeout: float | None
) -> tuple[list[Made], list[Refusal]]:
    """The vectors of the messages, and those for which there are none, with the reason.

    When an embedder refuses a batch but takes a harmless text, the batch is halved until what it
    refuses stands alone.
    """
    limit = embedder.get_embedder(model).passage_bytes
    cut = [passages.cut(one.text, limit) for one in taken]
    try:
        texts = [passage for found in cut for passage in found]
        made = embedder.embed_passages(model, texts, timeout=timeout)
    except ProviderUnavailable as error:
        return [], [(one, str(error)) for one in taken]
    except ProviderRefused as error:
        if len(taken) == 1 or not _takes_anything(model, timeout):
            return [], [(one, str(error)) for one in taken]
        middle = len(taken) // 2
        halves = (taken[:middle], taken[middle:])
        first, second = (_embed(model, half, timeout) for half in halves)
        return first[0] + second[0], first[1] + second[1]
    vectors = iter(made.vectors)
    sizes = [sum(map(len, found)) for found in cut]
    return [
        Made(one, [next(vectors) for _ in found], _share(made.tokens, size, sum(sizes)))
        for one, found, size in zip(taken, cut, sizes, strict=True)
    ], []


def _takes_anything(model: str, timeout: float | None) -> bool:
    try:
        embedder.embed_passages(model, [CANARY], timeout=timeout)
    except (ProviderRefused, ProviderUnavailable):
        return False
    return True


def _share(tokens: int, size: int, whole: int) -> int:
    return math.ceil(tokens * size / whole) if whole else 0


@retry_conflicts
def _store(model: str, claim: uuid.UUID, made: Sequence[Made]) -> list[Made]:
    """Replace the vectors and drop the requests that are still ours. Returns which were.

    The messages are held meanwhile, so that no text can change between the look and the write; a
    message that somebody else holds is left for another time.
    """
    with transaction.atomic():
        found = sql.rows(
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
            (*owners[one.claimed.message_id], place, len(vector), embedder.as_text(vector))
            for one in stored
            for place, vector in enumerate(one.vectors)
            if embedder.square(vector) > 0
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


def _record_usage(model: str, stored: Sequence[Made]) -> None:
    """Note what a provider charged for, thread by thread."""
    spent: dict[str, int] = {}
    for one in stored:
        if one.tokens:
            spent[one.claimed.thread_id] = spent.get(one.claimed.thread_id, 0) + one.tokens
    for thread_id, tokens in spent.items():
        usage.record(ModelUsage.Purpose.EMBEDDING, model, input_tokens=tokens, thread_id=thread_id)
