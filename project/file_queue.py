"""The file-system broker, mended: a message is there whole or not at all; a broken one is dropped.

kombu's own writes a message where workers look for it, byte by byte: one that is read too early,
or was cut off by a full disk or a kill, ends the worker that finds it.
"""

import logging
import time
import uuid
from pathlib import Path
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps

logger = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """Reads and writes what kombu's does."""

    def _put(  # type: ignore[override]  # as kombu itself does
        self, queue: str, payload: dict[str, Any], **kwargs: Any
    ) -> None:
        folder = Path(self.data_folder_out)
        name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}"
        unseen = folder / f".{name}.part"
        try:
            unseen.write_text(dumps(payload), encoding="utf-8")
            unseen.rename(folder / f"{name}.{queue}.msg")
        except OSError as error:
            unseen.unlink(missing_ok=True)
            raise ChannelError(f"No message can be put into {folder}: {error}") from error

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """The next message; `queue.Empty` without one. What is no message is dropped."""
        while True:
            try:
                return super()._get(queue)
            except ValueError as error:
                logger.warning(
                    "A message that cannot be read was dropped (%s)", type(error).__name__
                )

    def get_table(self, exchange: str) -> Any:
        """The queues of an exchange; none while its file is half written."""
        try:
            return super().get_table(exchange)
        except ValueError:
            return []

    def _queue_bind(self, exchange: str, *binding: Any) -> None:
        try:
            super()._queue_bind(exchange, *binding)
        except ValueError:  # whoever wrote it was cut off
            (Path(self.control_folder) / f"{exchange}.exchange").unlink(missing_ok=True)
            super()._queue_bind(exchange, *binding)


class Transport(filesystem.Transport):
    """kombu's, with these channels."""

    Channel = Channel
