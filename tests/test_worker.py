"""Real workers and a real broker: killed in the middle, away for a while."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from mastra_memory.db import leases
from mastra_memory.embedding import indexing
from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest, MessageEmbedding
from tests.support import live_server, servers
from tests.support.factories import make_thread, some_messages
from tests.support.waiting import MAX_WAIT_SECONDS, wait_until
from tests.support.worker_settings import MASTRA_MEMORY as WORKER

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
MESSAGES = 5_000
MODEL = WORKER["EMBEDDER"]
COMMAND = ["-m", "celery", "--quiet", "-A", "project", "worker", "--concurrency", "2"]


@contextmanager
def worker(env: Mapping[str, str], *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Celery worker in a process group of its own."""
    process = subprocess.Popen(
        [sys.executable, *COMMAND, "--without-gossip", "--without-mingle", *options],
        env=dict(env),
        cwd=servers.ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def hint(env: Mapping[str, str]) -> None:
    """Send a worker the task that a save sends."""
    send = "from mastra_memory.tasks import embed_pending; embed_pending.delay()"
    command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", send]
    subprocess.run(command, env=dict(env), cwd=servers.ROOT, check=True, timeout=MAX_WAIT_SECONDS)


def test_worker__after_a_kill_embeds_every_message_once(
    tmp_path: Path, memory_settings: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_settings(**WORKER)
    log = tmp_path / "embedded"
    monkeypatch.setenv("EMBEDDED_LOG", str(log))
    env = live_server.environment(tmp_path) | {
        "DJANGO_SETTINGS_MODULE": "tests.support.worker_settings"
    }
    thread = make_thread("alice", "t")
    batch = some_messages(thread, MESSAGES)
    for start in range(0, MESSAGES, 500):
        Memory().save_messages(batch[start : start + 500])
    assert EmbeddingRequest.objects.count() == MESSAGES
    with worker(env) as first:
        hint(env)
        wait_until(lambda: MessageEmbedding.objects.count() >= 500)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    written = len(log.read_text().splitlines())
    stored = {f"Message {key.message_id[1:]}" for key in MessageEmbedding.objects.all()}
    assert 500 <= len(stored) < MESSAGES
    with worker(env):
        hint(env)
        wait_until(lambda: EmbeddingRequest.objects.count() <= 2 * indexing.BATCH_SIZE)
        # What the killed process had taken is free again once its time is over.
        time.sleep(leases.LEASE_SECONDS)
        call_command("mastra_catch_up", verbosity=0)
        wait_until(lambda: not EmbeddingRequest.objects.exists())
    embedded = log.read_text().splitlines()
    assert len(embedded) >= MESSAGES
    lost = set(embedded[:written]) - stored
    assert len(lost) <= 2 * indexing.BATCH_SIZE
    found = MessageEmbedding.objects.filter(model=MODEL).values_list("message_id", flat=True)
    assert set(found) == {message["id"] for message in batch}
    # The one thing made a second time is what died with the worker before it was stored.
    twice = [text for text, times in Counter(embedded).items() if times > 1]
    assert set(twice) <= lost


def test_worker__another_takes_over_when_one_is_killed(
    tmp_path: Path, memory_settings: Callable[..., None]
) -> None:
    memory_settings(**WORKER)
    env = live_server.environment(tmp_path) | {
        "DJANGO_SETTINGS_MODULE": "tests.support.worker_settings",
        "EMBEDDER_PAUSE": "30",
    }
    Memory().save_messages(some_messages(make_thread("alice", "t"), 20))

    def claims() -> set[object]:
        held = EmbeddingRequest.objects.exclude(claim=None)
        return set(held.values_list("claim", flat=True))

    with worker(env) as first:
        hint(env)
        wait_until(lambda: bool(claims()))
        claimed = claims()
        with worker(env, "--beat", "--schedule", str(tmp_path / "schedule")):
            # The first one is slow but alive: nobody takes its work.
            time.sleep(leases.LEASE_SECONDS + 5)
            assert claims() == claimed
            os.killpg(first.pid, signal.SIGKILL)
            wait_until(lambda: bool(claims() - claimed))


def test_lease__allows_takeover_within_15_seconds(settings: Settings) -> None:
    interval = settings.CELERY_BEAT_SCHEDULE["resume"]["schedule"]
    assert leases.LEASE_SECONDS + interval <= 15


@contextmanager
def silent_broker() -> Iterator[str]:
    """A port that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"amqp://127.0.0.1:{listener.getsockname()[1]}//"


def save_over_http(folder: Path, prefix: str, count: int, **variables: str) -> None:
    """Save messages one by one with a web server of its own."""
    folder.mkdir(exist_ok=True)
    with live_server.real_server(folder, **variables) as server:
        thread = make_thread("alice", prefix)
        for message in some_messages(thread, count, prefix=prefix):
            body = {"messages": [message]}
            status, _ = server.send("POST", "save-messages?agentId=any", body)
            assert status == 200


@pytest.mark.parametrize("kind", ["refusing", "silent"])
def test_save__a_broker_that_is_down_loses_nothing(tmp_path: Path, kind: str) -> None:
    with silent_broker() as silent:
        broker = silent if kind == "silent" else "amqp://127.0.0.1:1//"
        save_over_http(tmp_path / "down", "down", 65, CELERY_BROKER_URL=broker)
    assert EmbeddingRequest.objects.filter(thread_id="down").count() == 65
    # The broker is up again: the task of one more save embeds everything.
    folder = tmp_path / "back"
    with worker(live_server.environment(folder)):
        save_over_http(folder, "back", 1)
        wait_until(lambda: not EmbeddingRequest.objects.exists())
    assert MessageEmbedding.objects.filter(thread_id="down").count() == 65
