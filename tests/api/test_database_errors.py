"""The answers to requests during which the database fails."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from mastra_memory.api import database_errors
from mastra_memory.db import locking
from tests.support.api_client import Answer, Api

pytestmark = pytest.mark.django_db(transaction=True)


def failing(state: str) -> Callable[..., Any]:
    """Let PostgreSQL answer every statement with an error of this SQLSTATE."""
    raise_it = f"DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{state}'; END $$"

    def execute(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        return execute(raise_it, None, False, context)

    return execute


def save_thread(api: Api, wrapper: Callable[..., Any]) -> Answer:
    """Ask for something that writes."""
    with connection.execute_wrapper(wrapper):
        return api.post("threads", {"resourceId": "alice", "title": "Tea"})


@pytest.mark.parametrize(
    ("state", "text", "seconds"),
    [
        ("53100", database_errors.DISK_FULL, "5"),
        ("53200", database_errors.OUT_OF_MEMORY, "5"),
        ("53300", database_errors.TOO_MANY_CONNECTIONS, "5"),
        ("57P03", database_errors.UNREACHABLE, "5"),
    ],
)
def test_database_error__names_the_reason(api: Api, state: str, text: str, seconds: str) -> None:
    answer = save_thread(api, failing(state))
    assert (answer.status, answer.body) == (503, {"error": text})
    assert answer.headers["Retry-After"] == seconds


@pytest.mark.parametrize("state", sorted(locking.CONFLICT_STATES))
def test_database_error__a_conflict_can_be_retried(api: Api, state: str) -> None:
    answer = save_thread(api, failing(state))
    assert answer.status == 503
    assert "may be sent again" in answer.body["error"]
    assert "cannot be reached" not in answer.body["error"]
    assert answer.headers["Retry-After"] == "1"


def test_database_error__a_refused_connection_is_no_unreachable_database(api: Api) -> None:
    def refuse(*args: object) -> None:
        raise OperationalError("connection failed: FATAL:  sorry, too many clients already")

    answer = save_thread(api, refuse)
    assert (answer.status, answer.body["error"]) == (503, database_errors.TOO_MANY_CONNECTIONS)
