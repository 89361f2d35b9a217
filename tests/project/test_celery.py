"""The queue: files by default, and a broker that is away costs next to nothing."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from project.celery import (
    WORKER_CONNECT_TIMEOUT_SECONDS,
    create_queue_folders,
    raise_worker_broker_timeout,
)
from tests.project.commands import manage

PUBLISH = """
from project.celery import app
app.send_task("nobody.knows.this", args=[1])
"""
# The first attempt loads what is loaded lazily; the best of the others counts.
PUBLISH_IN_VAIN = """
import time
from kombu.exceptions import OperationalError
from project.celery import app
seconds = []
for _ in range(4):
    started = time.perf_counter()
    try:
        app.send_task("any", args=[1])
    except OperationalError:
        seconds.append(time.perf_counter() - started)
assert len(seconds) == 4
print(min(seconds))
"""


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port on which somebody takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def seconds_to_fail(tmp_path: Path, broker: str) -> float:
    """Publish as a web process of the service would, with this broker."""
    done = manage(tmp_path, "shell", "-v", "0", "-c", PUBLISH_IN_VAIN, CELERY_BROKER_URL=broker)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_send_task__a_refusing_broker_costs_at_most_50_ms(tmp_path: Path, scheme: str) -> None:
    assert seconds_to_fail(tmp_path, f"{scheme}://127.0.0.1:1/") < 0.05


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_send_task__a_silent_broker_costs_about_50_ms(
    tmp_path: Path, scheme: str, silent_port: int
) -> None:
    # The limit is 50 ms of waiting; the rest is room for a busy machine.
    assert seconds_to_fail(tmp_path, f"{scheme}://127.0.0.1:{silent_port}/") < 0.15


def test_send_task__without_a_broker_the_message_is_a_file(tmp_path: Path) -> None:
    done = manage(tmp_path, "shell", "-v", "0", "-c", PUBLISH)
    assert done.returncode == 0, done.stderr
    (message,) = (tmp_path / "queue" / "messages").iterdir()
    assert "nobody.knows.this" in message.read_text()


def test_make_queue_folders__leaves_other_options_alone(tmp_path: Path) -> None:
    other = Celery("other", set_as_current=False)
    other.conf.broker_transport_options = {"data_folder_in": str(tmp_path / "in"), "max_retries": 0}
    create_queue_folders(other)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_be_patient_in_workers__lifts_the_limits_of_web_requests() -> None:
    conf = Celery("other", set_as_current=False).conf
    conf.broker_transport_options = {"socket_timeout": 0.05, "max_retries": 0}
    raise_worker_broker_timeout(conf=conf)
    assert conf.broker_connection_timeout == WORKER_CONNECT_TIMEOUT_SECONDS
    assert conf.broker_transport_options == {}
