"""Everything runs on the connection that the routers choose for our models."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

import mastra_memory
from mastra_memory.db import routing, sql

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(mastra_memory.__file__).parent
DIRECT_USE = re.compile(
    r"from django\.db import .*\b(connection|DEFAULT_DB_ALIAS)\b"
    r"|(?<![\w.`])transaction\.(?:atomic|on_commit)\b(?!\(\) and)"
)


class SendToOther:
    """A router that sends our models to the alias `other`."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        """Return `other` for our models."""
        return "other" if model._meta.app_label == "mastra_memory" else None

    db_for_write = db_for_read


@pytest.fixture
def _other() -> Any:
    """A second alias for the test database, with a connection of its own."""
    connections["other"] = connections["default"].copy(alias="other")
    try:
        with override_settings(DATABASE_ROUTERS=[f"{__name__}.SendToOther"]):
            yield
    finally:
        connections["other"].close()
        del connections["other"]


@pytest.mark.usefixtures("_other")
def test_get_connection__follows_the_router(settings: Any) -> None:
    assert routing.get_alias() == "other"
    backends = {
        sql.fetch_one("SELECT pg_backend_pid()"),
        sql.fetch_all("SELECT pg_backend_pid()")[0],
        sql.fetch_all_prepared("SELECT pg_backend_pid()")[0],
    }
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert len(backends) == 1 and cursor.fetchone() not in backends


@pytest.mark.usefixtures("_other")
def test_atomic__opens_the_transaction_there() -> None:
    calls = []

    @routing.atomic
    def act() -> None:
        calls.append((connections["other"].in_atomic_block, connections["default"].in_atomic_block))

    act()
    with routing.atomic():
        assert connections["other"].in_atomic_block
        routing.on_commit(lambda: calls.append((False, False)))
        assert len(calls) == 1
    assert calls == [(True, False), (False, False)]


def test_package__never_uses_the_default_connection() -> None:
    # Migrations use the connection of their schema editor.
    paths = [path for path in ROOT.rglob("*.py") if "migrations" not in path.parts]
    direct = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in paths
        if path != Path(routing.__file__)
        for line in path.read_text().splitlines()
        if DIRECT_USE.search(line)
    ]
    assert direct == []
