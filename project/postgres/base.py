"""Start the embedded server when the first connection is made, not when settings are read."""

from pathlib import Path
from typing import Any

from django.db.backends.postgresql import base

from project import embedded


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own wrapper; only opening a connection differs."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect, starting the server if no other process has."""
        embedded.start(Path(self.settings_dict["EMBEDDED_DIR"]))
        return super().get_new_connection(conn_params)
