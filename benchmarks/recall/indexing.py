"""How many messages a second are embedded, by as many processes as there are cores."""

import multiprocessing
import os
import time

from django.db import connection

from mastra_memory.embedding import requests


def measure(messages: int) -> float:
    """Embed so many stored messages anew; messages a second."""
    from mastra_memory import conf, sql

    model = conf.app_settings().EMBEDDER
    sql.execute(
        """INSERT INTO mastra_memory_embeddingrequest (message_id, thread_id, resource_id, model)
        SELECT id, thread_id, resource_id, %s FROM mastra_memory_message
        ORDER BY created_at LIMIT %s""",
        [model, messages],
    )
    sql.execute(
        """DELETE FROM mastra_memory_messageembedding e USING mastra_memory_embeddingrequest r
        WHERE e.message_id = r.message_id AND e.model = r.model"""
    )
    connection.close()
    cores = os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(cores + 1)
    processes = [context.Process(target=_work, args=(gate, model)) for _ in range(cores)]
    for process in processes:
        process.start()
    gate.wait(timeout=120)
    start = time.perf_counter()
    for process in processes:
        process.join()
    taken = time.perf_counter() - start
    assert not requests.models_due()
    return round(messages / taken, 1)


def _work(gate: "multiprocessing.synchronize.Barrier", model: str) -> None:
    import django

    django.setup()
    from mastra_memory.embedding import embedder, indexing

    embedder.embed_passages(model, ["loaded before the clock starts"])
    connection.ensure_connection()
    gate.wait(timeout=120)
    indexing.embed_pending(seconds=3_600)
