"""The database connection that Django's routers choose for the models of this app.

A host project may keep our tables in a database other than `default`. Raw SQL and transactions
must then use that connection, so nothing in this package uses `django.db.connection`.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar, overload

from django.apps import apps
from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

P = ParamSpec("P")
R = TypeVar("R")


def get_alias() -> str:
    """Return the alias of the database to which our models are written.

    Raw SQL reads from it too: a statement often reads what the transaction has just written, which
    a replica does not have yet.
    """
    return router.db_for_write(_get_thread_model())


@cache
def _get_thread_model() -> type[Model]:
    # Modules of models import this one. Each statement calls this, so the model is looked up once.
    return apps.get_model("mastra_memory", "Thread")


def get_connection() -> BaseDatabaseWrapper:
    """Return the connection of this thread to the database of our models."""
    return connections[get_alias()]


DEFAULT_POOL_SIZE = 4
"""The size of psycopg's connection pool if its options do not set one."""


def get_pool_size() -> int | None:
    """Return how many connections the pool of the database can open, or None without a pool.

    The size is read from the settings: asking the pool itself would open its connections.
    """
    options = get_connection().settings_dict["OPTIONS"].get("pool")
    if not options:
        return None
    options = {} if options is True else options
    size: int = options.get("max_size") or options.get("min_size", DEFAULT_POOL_SIZE)
    return size


@overload
def atomic(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def atomic(*, durable: bool = False) -> transaction.Atomic: ...


def atomic(function: Callable[P, R] | None = None, *, durable: bool = False) -> Any:
    """Open a transaction, like `transaction.atomic`, on the database of our models.

    Use it as a decorator without parentheses, or as a context manager. A decorator that is given
    `using` would ask the routers when the module is imported; this one asks with each call.

    Args:
        function: The function to run in a transaction.
        durable: Raise `RuntimeError` inside another transaction.
    """
    if function is None:
        return transaction.atomic(using=get_alias(), durable=durable)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with transaction.atomic(using=get_alias()):
            return function(*args, **kwargs)

    return call


def on_commit(callback: Callable[[], object], *, using: str | None = None) -> None:
    """Call `callback` when the current transaction commits; at once if there is none.

    An exception in it is logged by Django and does not reach the caller.

    Args:
        callback: The function to call.
        using: The alias of the database whose transaction to wait for; default: that of our models.
    """
    transaction.on_commit(callback, using=using or get_alias(), robust=True)
