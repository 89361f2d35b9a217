"""Measure how many messages a second are embedded by one process per core."""

import multiprocessing
import os
import time
from multiprocessing.synchronize import Barrier

from django.db import connection

from mastra_memory.embedding import queue

START_TIMEOUT = 120


def measure(count: int) -> float:
    """Embed `count` stored messages again and return the messages per second."""
    from mastra_memory import conf
    from mastra_memory.db import sql

    model = conf.app_settings().EMBEDDER
    sql.execute(
        """INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
        SELECT id, thread_id, resource_id, %s FROM mastra_memory_message
        ORDER BY created_at LIMIT %s""",
        [model, count],
    )
    sql.execute(
        """DELETE FROM mastra_memory_messageembedding e USING mastra_memory_embeddingrequest r
        WHERE e.message_id = r.message_id AND e.model = r.model"""
    )
    connection.close()
    cores = os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(cores + 1)
    processes = [context.Process(target=_embed, args=(barrier, model)) for _ in range(cores)]
    for process in processes:
        process.start()
    barrier.wait(timeout=START_TIMEOUT)
    started = time.perf_counter()
    for process in processes:
        process.join()
    seconds = time.perf_counter() - started
    assert not queue.list_due_models()
    return round(count / seconds, 1)


def _embed(barrier: Barrier, model: str) -> None:
    import django

    django.setup()
    from mastra_memory.embedding import embedder, indexing

    # Loading the model and connecting take seconds and happen once, so they are not measured.
    embedder.embed_passages(model, ["load the model"])
    connection.ensure_connection()
    barrier.wait(timeout=START_TIMEOUT)
    indexing.embed_pending(seconds=3_600)
