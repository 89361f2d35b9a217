"""PostgreSQL's text search configurations."""

from mastra_memory.db import sql


def has_configuration(name: str) -> bool:
    """Return whether PostgreSQL has a text search configuration of this name."""
    # The catalog has no model, so the ORM cannot read it.
    return bool(sql.fetch_all("SELECT 1 FROM pg_ts_config WHERE cfgname = %s", [name]))
