"""The file-system broker: messages are whole, and other files are set aside."""

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


def message(number: int, **more: Any) -> dict[str, Any]:
    """Return a message as kombu stores it."""
    properties = {"delivery_tag": f"tag {number}", "delivery_info": {"exchange": QUEUE}}
    return {"body": "", "headers": {"number": number}, "properties": properties, **more}


def received(channel: Any) -> Iterator[int]:
    """Yield the numbers of all messages in the queue, and remove them."""
    while True:
        try:
            yield channel._get(QUEUE)["headers"]["number"]
        except Empty:
            return


def test_connection__of_the_service_is_ours(channel: Any) -> None:
    assert isinstance(channel, Channel) and isinstance(channel.connection, Transport)


def test_put__a_reader_at_the_same_moment_sees_whole_messages(tmp_path: Path) -> None:
    def write(_: int) -> None:
        with connection(tmp_path) as mine:
            channel: Any = mine.channel()
            for number in range(200):
                channel._put(QUEUE, message(number, filling="x" * 20_000))

    with ThreadPoolExecutor(2) as pool, connection(tmp_path) as reading:
        writers = pool.map(write, range(2))
        numbers: list[int] = []
        while len(numbers) < 400:
            numbers += received(reading.channel())
        assert list(writers) == [None, None]
    assert sorted(numbers) == sorted(list(range(200)) * 2)
    assert list((tmp_path / "messages").iterdir()) == []


JUNK = [b"", b'{"body": "cut o', b"\x00" * 50, b"\xff\xfe", b"[" * 100_000]
JUNK += [b"null", b"[]", b"{}", b'"x"', b"7", b'{"properties": 1}', b'{"properties": {}}']
JUNK += [b'{"properties": {"delivery_tag": []}}', b'{"__type__": "x", "__value__": 1}']
JUNK += [b'{"properties": {"delivery_tag": "a", "delivery_info": "b"}}']
JUNK += [b'{"body": "a", "properties": {"delivery_tag": "a", "body_encoding": "base64"}}']


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_get__a_file_that_holds_no_message_is_set_aside(
    channel: Any, tmp_path: Path, junk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"0_junk.{QUEUE}.msg"
    (tmp_path / "messages" / name).write_bytes(junk)
    channel._put(QUEUE, message(1))
    assert list(received(channel)) == [1]
    assert list((tmp_path / "messages").iterdir()) == []
    assert (tmp_path / "rejected" / name).read_bytes() == junk
    (record,) = caplog.records
    assert name in record.message and "holds no message" in record.message


def test_get__a_folder_in_the_queue_is_set_aside(channel: Any, tmp_path: Path) -> None:
    (tmp_path / "messages" / f"0_folder.{QUEUE}.msg").mkdir()
    channel._put(QUEUE, message(1))
    assert list(received(channel)) == [1]
    assert (tmp_path / "rejected" / f"0_folder.{QUEUE}.msg").is_dir()


def test_get__what_cannot_be_set_aside_stops_nothing(channel: Any, tmp_path: Path) -> None:
    (tmp_path / "rejected").write_text("a file where the folder should be")
    (tmp_path / "messages" / f"0_junk.{QUEUE}.msg").write_bytes(b"null")
    channel._put(QUEUE, message(1))
    assert list(received(channel)) == [1]


def test_get__messages_of_other_queues_stay(channel: Any, tmp_path: Path) -> None:
    channel._put("other", message(1))
    channel._put(f"other.{QUEUE}", message(2))
    assert list(received(channel)) == []
    assert len(list((tmp_path / "messages").iterdir())) == 2


@pytest.mark.parametrize("junk", [b"", b'[["cel', b"null", b'"x"', b"[1]"])
def test_bind__a_broken_exchange_file_is_replaced(
    channel: Any, tmp_path: Path, junk: bytes
) -> None:
    (tmp_path / "control" / f"{QUEUE}.exchange").write_bytes(junk)
    assert channel.get_table(QUEUE) == []
    channel._queue_bind(QUEUE, QUEUE, "", QUEUE)
    assert [entry.queue for entry in channel.get_table(QUEUE)] == [QUEUE]


def test_put__a_folder_that_is_gone_is_an_error_of_the_broker(tmp_path: Path) -> None:
    with connection(tmp_path) as mine:
        channel: Any = mine.channel()
        (tmp_path / "messages").rmdir()
        with pytest.raises(mine.channel_errors):
            channel._put(QUEUE, {"a": 1})


def test_channel__returns_claimed_messages_of_killed_workers(
    channel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel._put(QUEUE, message(1))
    (path,) = (tmp_path / "messages").glob("*.msg")
    path.rename(path.with_name(f".{path.name}.taken"))
    with connection(tmp_path) as later:
        assert list(received(later.channel())) == []
        monkeypatch.setattr("project.file_queue.MAX_CLAIM_SECONDS", -1)
        assert list(received(later.channel())) == [1]
