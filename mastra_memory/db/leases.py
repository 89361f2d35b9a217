"""Leases: limit how long a worker's claim is valid, and renew it while the worker runs.

A claim is a token in the row of the work, with a time after which another worker may take over. A
killed worker cannot release its claim, so the lease is short, and a thread extends it for as long
as the worker is alive. A worker that was only slow finds that its token is not in the row
anymore, and discards its result.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from django.db import Error

from mastra_memory.db import routing

logger = logging.getLogger(__name__)

LEASE_SECONDS = 8.0
"""Time after its last renewal at which a claim may be taken over."""
RENEWAL_SECONDS = 2.0
"""Time between two renewals. Several may fail before the lease is lost."""


@contextmanager
def keep_renewing(renew: Callable[[], object]) -> Iterator[None]:
    """Call `renew` every `RENEWAL_SECONDS` during the block, in a thread of its own.

    The thread opens a database connection with the first renewal, so short work costs none.
    """
    finished = Event()

    def run() -> None:
        try:
            while not finished.wait(RENEWAL_SECONDS):
                _renew_once(renew)
        finally:
            routing.get_connection().close()

    thread = Thread(target=run, name="mastra-memory-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _renew_once(renew: Callable[[], object]) -> None:
    try:
        renew()
    except Error as error:
        logger.warning("A lease could not be renewed: %s", error)
        routing.get_connection().close()  # The next renewal opens a new connection.
