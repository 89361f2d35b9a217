"""Maintenance work that the management commands start: missing work, embeddings, search words."""

from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import QuerySet

from mastra_memory import conf, tasks
from mastra_memory.db import sql, text_search
from mastra_memory.embedding import embedder, indexing, queue, stats
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Message, ReviewNote, Thread
from mastra_memory.observational import claims, cycle, events, idle, requested_work
from mastra_memory.review import exports
from mastra_memory.search import tsvector
from mastra_memory.threads import titles

MAX_DUE_RECORDS = 10_000
"""How many records one run observes at most."""
REBUILD_RATIO = 4
"""Rebuild an index that would grow by more than 1/4: inserting a vector into an HNSW index was
measured to cost about eight times as much as including it in a build."""


def embed_pending() -> int:
    """Embed all messages that are due, and return how many were embedded."""
    queue.fail_expired()
    for model in conf.get_embedding_models():
        queue.enqueue_cloned_messages(model)
    total, more = 0, True
    while more:
        done, more = indexing.embed_pending(seconds=tasks.EMBED_TASK_SECONDS)
        total += done
    return total


def write_pending_words() -> int:
    """Write the search words of all messages that have none, and return how many were written."""
    total = 0
    while done := tsvector.index_pending_words(limit=tasks.WRITE_WORDS_BATCH_SIZE):
        total += done
    return total


def generate_pending_titles() -> int:
    """Generate the thread titles that are due, and return how many threads were processed."""
    thread_ids = titles.list_due_threads()
    for thread_id in thread_ids:
        titles.generate_title(thread_id)
    return len(thread_ids)


def run_due_observations() -> int:
    """Observe and reflect where it is due, and return how many records were processed."""
    events.end_abandoned()
    record_ids = claims.list_due_records(limit=MAX_DUE_RECORDS)
    for record_id in record_ids:
        requested_work.do_requests(record_id)
        cycle.run_due_cycle(record_id)
    return len(record_ids) + idle.activate_idle()


def write_pending_exports() -> int:
    """Write the export files that are waiting or were interrupted, and return how many."""
    return sum(exports.run_export(job_id) for job_id in exports.list_unfinished_jobs())


def remove_expired_exports() -> int:
    """Delete export files that are past their storage time, and return how many."""
    return exports.delete_expired_jobs()


def request_embeddings(
    model: str, *, everything: bool = False, again: bool = False, retry: bool = False
) -> int:
    """Queue messages for embedding, and return how many are pending for the model.

    Args:
        model: The embedder as `provider/model`.
        everything: Also queue messages that were saved without semantic recall.
        again: Also queue messages that already have vectors of this model.
        retry: Also queue messages whose last attempt failed.

    Raises:
        InvalidInput: The embedder is unknown.
        ProviderRefused: The embedder's library is not installed.
    """
    embedder.get_embedder(model)  # report an unusable embedder before any row is written
    if retry:
        queue.retry_failed()
    queue.enqueue(model, everything=everything, again=again)
    return sum(backlog.pending for backlog in stats.list_backlogs() if backlog.model == model)


def embed_queued_messages(model: str) -> Iterator[int]:
    """Embed all queued messages of one model, and yield the number of messages of each batch."""
    while True:
        claimed, stored = indexing.embed_batch(model)
        yield stored
        sql.clear_query_log()
        if not claimed:
            return


def drop_outgrown_indexes(model: str, pending: int) -> bool:
    """Drop the indexes that are cheaper to rebuild than to extend, and return whether any was.

    Args:
        model: The embedder as `provider/model`.
        pending: The number of messages that are about to be embedded.
    """
    outgrown = [
        VectorIndex.for_model(model, kind.dimensions)
        for kind in (stats.list_vector_counts() if pending else ())
        if kind.model == model and kind.index_ready and pending * REBUILD_RATIO > kind.vectors
    ]
    for index in outgrown:
        index.drop()
    return bool(outgrown)


def build_indexes(
    model: str, *, always: bool, before_build: Callable[[int], None] = lambda vectors: None
) -> None:
    """Build the missing indexes of a model, one for each number of dimensions.

    Args:
        model: The embedder as `provider/model`.
        always: Build an index even for fewer vectors than the setting `EXACT_SEARCH_LIMIT`.
        before_build: Called with the number of vectors before each build, which may take minutes.
    """
    limit = conf.app_settings().EXACT_SEARCH_LIMIT
    for kind in stats.list_vector_counts():
        index = VectorIndex.for_model(model, kind.dimensions)
        is_indexable = index.column_type is not None  # pgvector limits the number of dimensions
        if kind.model != model or kind.index_ready or not is_indexable:
            continue
        if always or kind.vectors > limit:
            before_build(kind.vectors)
            index.build()


def drop_embeddings(model: str) -> int:
    """Delete the vectors, indexes and requests of a model, and return the number of vectors.

    Raises:
        InvalidInput: The model is named in the setting `EMBEDDER` or `EMBED_ALSO`.
    """
    if model in conf.get_embedding_models():
        raise InvalidInput(f"{model} is in use: remove it from EMBEDDER and EMBED_ALSO first.")
    return stats.delete_model(model)


def rewrite_search_words(language: str, *, batch_size: int) -> Iterator[int]:
    """Write the search words of all messages, titles and notes again.

    Yield the number of messages of each batch. Each batch is a transaction of its own, so that
    messages can be saved meanwhile.

    Args:
        language: A text search configuration of PostgreSQL, for example `english`.
        batch_size: The number of messages in a batch.

    Raises:
        InvalidInput: PostgreSQL does not have this text search configuration.
    """
    if not text_search.has_configuration(language):
        raise InvalidInput(f"PostgreSQL has no text search configuration named {language}.")
    for rows in _iter_rows(Thread.objects.values_list("pk"), batch_size):
        tsvector.write_title_words([pk for (pk,) in rows])
    for rows in _iter_rows(ReviewNote.objects.values_list("pk"), batch_size):
        tsvector.write_note_words([pk for (pk,) in rows])
    for rows in _iter_rows(Message.objects.values_list("pk", "content_bytes"), batch_size):
        for ids in tsvector.split_batches(rows):
            yield tsvector.write_message_words(ids)


def _iter_rows(rows: QuerySet[Any, Any], batch_size: int) -> Iterator[list[Any]]:
    """Yield the rows in the order of their primary keys, `batch_size` at a time."""
    remaining = rows.order_by("pk")
    while batch := list(remaining[:batch_size]):
        yield batch
        remaining = rows.filter(pk__gt=batch[-1][0]).order_by("pk")
        sql.clear_query_log()
