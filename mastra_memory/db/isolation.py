"""System checks of the isolation level of transactions. `mastra_memory.checks` registers them."""

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import DatabaseError, connections
from psycopg import IsolationLevel

from mastra_memory.db import routing, sql


def check_isolation_level(**_: Any) -> list[checks.CheckMessage]:
    """Warn about an isolation level in `DATABASES` under which writes often conflict."""
    level = _find_isolation_option()
    return [] if level is None else _check_level(level.name.replace("_", " "))


def check_default_isolation_level(
    databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Warn about the isolation level that the server or the database role sets."""
    alias = routing.get_alias()
    is_checked = alias in (databases or ()) and connections[alias].vendor == "postgresql"
    if not is_checked or _find_isolation_option() is not None:
        return []
    try:
        found = sql.fetch_one("SHOW default_transaction_isolation")
    except DatabaseError:
        return []  # The database does not exist yet.
    return _check_level(found[0].upper()) if found else []


def _find_isolation_option() -> IsolationLevel | None:
    """Return `isolation_level` of the database options. Django reports an invalid one itself."""
    options = connections[routing.get_alias()].settings_dict.get("OPTIONS") or {}
    try:
        return IsolationLevel(options["isolation_level"])
    except (KeyError, ValueError):
        return None


def _check_level(name: str) -> list[checks.CheckMessage]:
    if name not in ("REPEATABLE READ", "SERIALIZABLE"):
        return []
    return [
        checks.Warning(
            f"The database {routing.get_alias()} uses the isolation level {name}. Parallel writes "
            "to one conversation then conflict often. They are retried a few times. If they still "
            "conflict, the API responds with status 503, and the client can retry the request.",
            hint="mastra_memory is made for READ COMMITTED, PostgreSQL's default. If other apps "
            "need this level, route mastra_memory to a database alias of its own, or start their "
            "transactions with SET TRANSACTION ISOLATION LEVEL.",
            id="mastra_memory.W027",
        )
    ]
