"""The queue: files by default, and a broker that is down fails at once."""

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
app.send_task("unknown.task", args=[1])
"""
PUBLISH_TO_NO_BROKER = """
from kombu.exceptions import OperationalError
from project.celery import app
try:
    app.send_task("any", args=[1])
except OperationalError:
    print("failed after", app.conf.broker_connection_timeout)
"""


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("kind", ["refusing", "silent"])
@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_send_task__gives_up_on_a_broker_that_is_down(
    tmp_path: Path, scheme: str, kind: str, silent_port: int
) -> None:
    broker = f"{scheme}://127.0.0.1:{silent_port if kind == 'silent' else 1}/"
    code = PUBLISH_TO_NO_BROKER
    done = manage(tmp_path, "shell", "-v", "0", "-c", code, CELERY_BROKER_URL=broker)
    assert (done.returncode, done.stdout) == (0, "failed after 0.04\n"), done.stderr


def test_send_task__without_a_broker_the_message_is_a_file(tmp_path: Path) -> None:
    done = manage(tmp_path, "shell", "-v", "0", "-c", PUBLISH)
    assert done.returncode == 0, done.stderr
    (message,) = (tmp_path / "queue" / "messages").iterdir()
    assert "unknown.task" in message.read_text()


def test_make_queue_folders__leaves_other_options_alone(tmp_path: Path) -> None:
    other = Celery("other", set_as_current=False)
    other.conf.broker_transport_options = {"data_folder_in": str(tmp_path / "in"), "max_retries": 0}
    create_queue_folders(other)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_raise_worker_broker_timeout__removes_web_limits() -> None:
    conf = Celery("other", set_as_current=False).conf
    conf.broker_transport_options = {"socket_timeout": 0.05, "max_retries": 0}
    raise_worker_broker_timeout(conf=conf)
    assert conf.broker_connection_timeout == WORKER_CONNECT_TIMEOUT_SECONDS
    assert conf.broker_transport_options == {}
