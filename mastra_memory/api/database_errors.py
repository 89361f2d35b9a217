"""Error messages for database failures, with the time after which to try again."""

from django.db import InterfaceError, OperationalError

from mastra_memory.db import locking
from mastra_memory.exceptions import ConcurrentUpdate

CONFLICT_RETRY_SECONDS = 1
"""For conflicts with other requests, which end soon."""
UNAVAILABLE_RETRY_SECONDS = 5
"""For failures that need an administrator or a restart of the database."""

UNREACHABLE = "The database cannot be reached"
DISK_FULL = (
    "The database's disk is full; nothing was stored. Send the request again once there is space."
)
OUT_OF_MEMORY = "The database is out of memory. Send the request again later."
TOO_MANY_CONNECTIONS = "The database has too many connections. Send the request again later."

_BY_STATE = {
    "53100": DISK_FULL,
    "53200": OUT_OF_MEMORY,
    "53300": TOO_MANY_CONNECTIONS,
}
_REFUSED_CONNECTION = ("too many clients", "too many connections", "connection slots")
"""Parts of PostgreSQL's English messages; libpq does not report an SQLSTATE if
a connection is refused."""


def describe_database_error(
    error: OperationalError | InterfaceError | ConcurrentUpdate,
) -> tuple[str, int]:
    """Return the text for the client and the seconds after which it may send the request again."""
    if locking.is_conflict(error):
        return str(ConcurrentUpdate()), CONFLICT_RETRY_SECONDS
    state = getattr(error.__cause__, "sqlstate", None)
    if state in _BY_STATE:
        return _BY_STATE[state], UNAVAILABLE_RETRY_SECONDS
    if state is None and any(text in str(error) for text in _REFUSED_CONNECTION):
        return TOO_MANY_CONNECTIONS, UNAVAILABLE_RETRY_SECONDS
    return UNREACHABLE, UNAVAILABLE_RETRY_SECONDS
