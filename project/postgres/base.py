"""Django's PostgreSQL wrapper, with an embedded server started late and a health check for free."""

import select
from pathlib import Path
from typing import Any

from django.db.backends.postgresql import base

from project import embedded_postgres


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own wrapper; only opening a connection and looking after it differ."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect, starting the embedded server if it is ours and no other process has."""
        if "EMBEDDED_DIR" in self.settings_dict:
            embedded_postgres.start(Path(self.settings_dict["EMBEDDED_DIR"]))
        return super().get_new_connection(conn_params)

    def is_usable(self) -> bool:
        """Whether the server still holds the line, told by the socket without a round trip.

        An idle connection has nothing to read, unless the server has hung up or said goodbye.
        """
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
