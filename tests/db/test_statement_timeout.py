"""Time limits of statements: they hold for a block and then restore the session."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.test import Client
from pytest_django import Settings

from mastra_memory import conf, setting_checks, tasks
from mastra_memory.db import sql
from mastra_memory.db.statement_timeout import is_statement_timeout, limit_statements
from mastra_memory.memory import Memory
from tests.conftest import Person
from tests.support.factories import make_thread


@pytest.fixture
def session(transactional_db: None) -> Iterator[None]:
    """Open a new connection outside of any transaction."""
    connection.close()
    yield
    connection.close()


def get_timeout() -> str:
    """Return the session's `statement_timeout`."""
    found = sql.fetch_one("SELECT current_setting('statement_timeout')")
    assert found is not None
    return str(found[0])


def wait(seconds: float) -> None:
    """Let the database sleep."""
    sql.fetch_all("SELECT pg_sleep(%s)", [seconds])


def test_limit_statements__holds_for_the_block_only(session: None) -> None:
    sql.execute("SET statement_timeout = '7s'")
    with limit_statements(0.05):
        assert get_timeout() == "50ms"
        with pytest.raises(OperationalError) as raised:
            wait(5)
        assert is_statement_timeout(raised.value)
        with limit_statements(3):
            assert get_timeout() == "3s"
        assert get_timeout() == "50ms"
    assert get_timeout() == "7s"


@pytest.mark.parametrize("seconds", [0.0, None])
def test_limit_statements__zero_is_no_limit_and_none_keeps_it(
    session: None, seconds: float | None
) -> None:
    sql.execute("SET statement_timeout = '7s'")
    with limit_statements(seconds):
        assert get_timeout() == ("7s" if seconds is None else "0")
    assert get_timeout() == "7s"


def test_limit_statements__survives_rollback_of_an_outer_block(session: None) -> None:
    with pytest.raises(OperationalError), transaction.atomic():
        with limit_statements(0.05):
            wait(5)
    assert get_timeout() == "0"
    with limit_statements(4):
        assert get_timeout() == "4s"


def test_limit_statements__survives_rollback_inside_the_block(session: None) -> None:
    with limit_statements(0.05):
        with pytest.raises(OperationalError), transaction.atomic():
            wait(5)
        assert get_timeout() == "50ms"
    assert get_timeout() == "0"


def test_limit_statements__ignores_aborted_transactions(session: None) -> None:
    with transaction.atomic():
        with limit_statements(2):
            transaction.set_rollback(True)
            with limit_statements(1):
                pass
    assert get_timeout() == "0"


def test_limit_statements__after_the_connection_was_lost(session: None) -> None:
    with limit_statements(2):
        connection.close()
        assert get_timeout() == "0"
    assert get_timeout() == "0"
    with limit_statements(2):
        assert get_timeout() == "2s"


def test_limit_statements__sends_nothing_if_the_session_has_it(
    session: None, statements: Callable[..., Any]
) -> None:
    sql.execute("SET statement_timeout = '5s'")
    with limit_statements(5):
        pass
    with statements(limits=True) as sent, limit_statements(5):
        get_timeout()
    assert len(sent) == 1
    with statements(limits=True) as sent, limit_statements(6):
        get_timeout()
    assert len(sent) == 3


def test_limit_statements__leaves_pooled_sessions_alone(
    session: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    with limit_statements(2):
        assert get_timeout() == "0"


class Sleep:
    """A function of the host project that is slow in the database."""

    def __call__(self, *arguments: Any) -> Any:
        wait(5)


sleep = Sleep()


def slow_threads(request: Any, threads: Any) -> Any:
    """Return threads that take 5 seconds to read."""
    return threads.extra(where=["pg_sleep(5) IS NOT NULL"])


def test_api__answers_503_with_json(
    alice: Person, memory_settings: Callable[..., None], settings: Settings
) -> None:
    memory_settings(
        STATEMENT_TIMEOUT_API=0.05, RESOURCE_FOR_REQUEST="tests.db.test_statement_timeout.sleep"
    )
    with transaction.atomic():
        answer = alice.api.get("threads")
        assert answer.status == 503
        assert "took too long" in answer.body["error"]
        transaction.set_rollback(True)


def test_admin__shows_a_page(session: None, memory_settings: Callable[..., None]) -> None:
    make_thread("r", "t")
    root = User.objects.create(username="root", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(root)
    memory_settings(
        STATEMENT_TIMEOUT_ADMIN=0.2, ADMIN_THREADS="tests.db.test_statement_timeout.slow_threads"
    )
    response = client.get("/admin/mastra_memory/thread/?all=1")
    assert response.status_code == 503
    assert "took too long" in response.content.decode()
    assert "Content-Security-Policy" in response.headers
    assert get_timeout() == "0"


def test_tasks__have_a_limit(
    session: None, memory_settings: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_settings(STATEMENT_TIMEOUT_TASKS=0.05)
    monkeypatch.setattr("mastra_memory.review.exports.run_export", lambda job_id: wait(5))
    with pytest.raises(OperationalError):
        tasks.make_export(1)
    assert get_timeout() == "0"
    assert Memory().get_thread_by_id("missing") is None


@pytest.mark.parametrize("limit", [-1, "5", True, float("nan"), 10**9])
def test_checks__name_a_wrong_limit(memory_settings: Callable[..., None], limit: object) -> None:
    memory_settings(STATEMENT_TIMEOUT_API=limit)
    (found,) = setting_checks.check_statement_timeouts()
    assert found.id == "mastra_memory.E012" and "STATEMENT_TIMEOUT_API" in found.msg
    memory_settings(STATEMENT_TIMEOUT_API=None)
    assert (
        setting_checks.check_statement_timeouts() == []
        and conf.app_settings().STATEMENT_TIMEOUT_ADMIN == 15
    )
