"""The broker made of files: nobody sees half a message, and no rubbish stops a worker."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

from project.celery import app
from project.file_queue import Channel, Transport

QUEUE = "celery"


def connection(folder: Path) -> Connection:
    """A connection as the service's own settings make it, in this folder."""
    for name in ("messages", "control"):
        (folder / name).mkdir(exist_ok=True)
    messages = str(folder / "messages")
    folders = {"data_folder_in": messages, "data_folder_out": messages}
    options = folders | {"control_folder": str(folder / "control")}
    return app.connection_for_write("filesystem://localhost", transport_options=options)


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Any]:
    with connection(tmp_path) as open_one:
        yield open_one.channel()


def taken(channel: Any) -> Iterator[Any]:
    """All messages that are there now."""
    while True:
        try:
            yield channel._get(QUEUE)
        except Empty:
            return


def test_connection__of_the_service_is_ours(channel: Any) -> None:
    assert isinstance(channel, Channel) and isinstance(channel.connection, Transport)


def test_put__a_reader_at_the_same_moment_sees_whole_messages(tmp_path: Path) -> None:
    def write(_: int) -> None:
        with connection(tmp_path) as mine:
            channel: Any = mine.channel()
            for number in range(200):
                channel._put(QUEUE, {"number": number, "filling": "x" * 20_000})

    with ThreadPoolExecutor(2) as pool, connection(tmp_path) as reading:
        writers = pool.map(write, range(2))
        numbers: list[int] = []
        while len(numbers) < 400:
            numbers += [message["number"] for message in taken(reading.channel())]
        assert list(writers) == [None, None]
    assert sorted(numbers) == sorted(list(range(200)) * 2)
    assert list((tmp_path / "messages").iterdir()) == []


@pytest.mark.parametrize("rubbish", [b"", b'{"body": "cut o', b"\x00" * 50, b"\xff\xfe"])
def test_get__what_is_no_message_is_dropped(channel: Any, tmp_path: Path, rubbish: bytes) -> None:
    (tmp_path / "messages" / f"0_cut.{QUEUE}.msg").write_bytes(rubbish)
    channel._put(QUEUE, {"a": 1})
    assert list(taken(channel)) == [{"a": 1}]
    assert list((tmp_path / "messages").iterdir()) == []


@pytest.mark.parametrize("rubbish", [b"", b'[["cel'])
def test_bind__a_half_written_exchange_is_written_anew(
    channel: Any, tmp_path: Path, rubbish: bytes
) -> None:
    (tmp_path / "control" / f"{QUEUE}.exchange").write_bytes(rubbish)
    assert channel.get_table(QUEUE) == []
    channel._queue_bind(QUEUE, QUEUE, "", QUEUE)
    assert [entry.queue for entry in channel.get_table(QUEUE)] == [QUEUE]


def test_put__a_folder_that_is_gone_is_an_error_of_the_broker(tmp_path: Path) -> None:
    with connection(tmp_path) as mine:
        channel: Any = mine.channel()
        (tmp_path / "messages").rmdir()
        with pytest.raises(mine.channel_errors):
            channel._put(QUEUE, {"a": 1})
