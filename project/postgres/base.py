"""Django's PostgreSQL wrapper, with an embedded server and a cheap health check."""

import select
from pathlib import Path
from typing import Any

from django.db.backends.postgresql import base

from project import embedded_postgres


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's wrapper, with another way to open and check a connection."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect. Start the embedded server first if it is used and does not run."""
        if "EMBEDDED_DIR" in self.settings_dict:
            embedded_postgres.start(Path(self.settings_dict["EMBEDDED_DIR"]))
        return super().get_new_connection(conn_params)

    def is_usable(self) -> bool:
        """Return True if the connection is still open, without a round trip to the server.

        An idle connection has nothing to read, unless the server has closed it.
        """
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
