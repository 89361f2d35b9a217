"""kombu's file-system broker with atomic writes; files that are not messages are set aside.

kombu's transport writes a message directly into the folder that workers read. A file that is read
too early, was truncated by a full disk, or is not a message ends the worker that reads it.
"""

import logging
import time
import uuid
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)

MAX_CLAIM_SECONDS = 60.0
REJECTED_FOLDER = "rejected"
"""Files that are not messages are moved there, next to the folder of the messages."""


class Channel(filesystem.Channel):
    """Reads and writes the same files as kombu's channel."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.return_abandoned_messages()

    def return_abandoned_messages(self) -> None:
        """Put messages back into the queue if the worker that claimed them was killed.

        A claim lasts milliseconds. If it is older than `MAX_CLAIM_SECONDS`, its worker has ended.
        """
        for path in Path(self.data_folder_in).glob(".*.taken"):
            with suppress(OSError):  # another worker may do the same at this moment
                if time.time() - path.stat().st_ctime > MAX_CLAIM_SECONDS:
                    path.rename(path.with_name(path.name[1:].removesuffix(".taken")))

    def _put(  # type: ignore[override]  # as kombu itself does
        self, queue: str, payload: dict[str, Any], **kwargs: Any
    ) -> None:
        folder = Path(self.data_folder_out)
        name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}"
        unfinished = folder / f".{name}.part"
        try:
            unfinished.write_text(dumps(payload), encoding="utf-8")
            unfinished.rename(folder / f"{name}.{queue}.msg")
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise ChannelError(f"Cannot write a message to {folder}: {error}") from error

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """Remove and return the oldest message of a queue. Raise `queue.Empty` if it is empty."""
        folder = Path(self.data_folder_in)
        for path in sorted(folder.glob(f"*.{queue}.msg")):
            if path.name.partition(".")[2] != f"{queue}.msg":
                continue
            claimed = folder / f".{path.name}.taken"
            try:
                path.rename(claimed)
            except OSError:  # another worker was faster
                continue
            try:
                payload = self._read_message(claimed)
            except Exception as error:  # noqa: BLE001  # no file may end the worker
                self._reject(claimed, path.name, error)
                continue
            claimed.unlink(missing_ok=True)
            return payload
        raise Empty

    def _read_message(self, path: Path) -> dict[str, Any]:
        """Return the message in a file. Raise an exception if it is not a message."""
        payload = loads(path.read_text(encoding="utf-8"))
        if not isinstance(payload, dict):
            raise TypeError("not a JSON object")
        # kombu does the same with the message next, but catches no exception there.
        message = self.Message(payload, channel=self)
        if not isinstance(message.delivery_tag, str):
            raise TypeError("delivery_tag is not a string")
        if not isinstance(message.delivery_info, dict) or not isinstance(message.headers, dict):
            raise TypeError("delivery_info and headers must be JSON objects")
        return payload

    def _reject(self, path: Path, name: str, error: Exception) -> None:
        """Move a file that is not a message out of the queue, and log it without its content."""
        rejected = Path(self.data_folder_in).parent / REJECTED_FOLDER / name
        try:
            rejected.parent.mkdir(exist_ok=True)
            path.rename(rejected)
        except OSError as failure:
            logger.warning("%s holds no message and cannot be moved: %s", path, failure)
            return
        kind = type(error).__name__
        logger.warning("A file in the queue holds no message (%s); moved to %s", kind, rejected)

    def get_table(self, exchange: str) -> Any:
        """Return the queues of an exchange; empty if its file cannot be read."""
        try:
            return super().get_table(exchange)
        except (ValueError, TypeError, RecursionError):
            return []

    def _queue_bind(self, exchange: str, *binding: Any) -> None:
        try:
            super()._queue_bind(exchange, *binding)
        except (ValueError, TypeError, RecursionError):  # cut off while it was written, or broken
            (Path(self.control_folder) / f"{exchange}.exchange").unlink(missing_ok=True)
            super()._queue_bind(exchange, *binding)


class Transport(filesystem.Transport):
    """kombu's transport with these channels."""

    Channel = Channel
