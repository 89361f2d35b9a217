"""System checks of the settings and of the database."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from psycopg import IsolationLevel
from pytest_django import Settings

from mastra_memory import checks, conf, setting_checks
from mastra_memory.checks import check_vectors
from mastra_memory.content import redaction
from mastra_memory.db import isolation, sql
from mastra_memory.embedding import indexing, queue
from mastra_memory.exceptions import InvalidInput, ProviderRefused
from mastra_memory.memory import Memory
from mastra_memory.setting_checks import check_metric, check_settings
from mastra_memory.testing import FakeEmbedder
from tests.support.factories import make_thread, some_messages


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"OPTIONS": {"lastMessages": 20}},
        {"AGENTS": {"a": {"workingMemory": {"enabled": True}}, "none": None}},
    ],
)
def test_check_settings__is_silent_for_valid_settings(
    memory_settings: Callable[..., None], values: Any
) -> None:
    memory_settings(**values)
    assert check_settings() == []


def test_check_settings__reports_unknown_names(memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTION={}, OPTIONS={}, Z=1)
    (error,) = check_settings()
    assert error.id == "mastra_memory.E001" and "OPTION, Z" in error.msg


@pytest.mark.parametrize("languages", ["en", ["en", "tlh"]])
def test_check_time_languages__reports_unknown_ones(
    memory_settings: Callable[..., None], languages: Any
) -> None:
    assert setting_checks.check_time_languages() == []
    memory_settings(SEARCH_TIME_LANGUAGES=languages)
    (error,) = setting_checks.check_time_languages()
    assert error.id == "mastra_memory.E027" and "de, en, es, fr, it, nl, pt" in error.msg


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "E001) MASTRA_MEMORY must be a dict, not NoneType"),
        (["OPTIONS"], "E001) MASTRA_MEMORY must be a dict, not list"),
        ({"NOPE": 1, 2: 3}, "E001) MASTRA_MEMORY has unknown settings: 2, NOPE"),
        ({"AGENTS": None}, "E001) MASTRA_MEMORY: not a dict: AGENTS"),
        ({"OPTIONS": None}, "E001) MASTRA_MEMORY: not a dict: OPTIONS"),
        ({"AGENTS": {"a": "x"}}, "E001) MASTRA_MEMORY: not a dict: options of agent a"),
    ],
)
@pytest.mark.django_db
def test_check__reports_settings_of_the_wrong_type(
    settings: Settings, value: Any, expected: str
) -> None:
    settings.MASTRA_MEMORY = value
    with pytest.raises(SystemCheckError, match="1 issue") as raised:
        call_command("check", databases=["default"])
    assert f"mastra_memory.{expected}" in str(raised.value)


def test_check_ignored_options__names_them(memory_settings: Callable[..., None]) -> None:
    memory_settings(
        OPTIONS={},
        AGENTS={
            "a": {
                "observationalMemory": {
                    "temporalMarkers": True,
                    "activateOnProviderChange": True,
                    "observation": {"bufferOnIdle": True},
                    "reflection": {"providerOptions": {"google": {"thinkingBudget": 5}}},
                }
            },
            "b": {"observationalMemory": {"temporalMarkers": False, "activateAfterIdle": "5m"}},
        },
    )
    (warning,) = setting_checks.check_ignored_options()
    assert warning.id == "mastra_memory.W013" and "agent a" in warning.msg
    for name in (
        "temporalMarkers",
        "activateOnProviderChange",
        "observation.bufferOnIdle",
        "reflection.providerOptions",
    ):
        assert f"observationalMemory.{name}" in warning.msg


def test_check_settings__reports_invalid_options(memory_settings: Callable[..., None]) -> None:
    memory_settings(
        OPTIONS={"readOnly": 5}, AGENTS={"a": {"readOnly": False, "lastMessages": -1}, "b": None}
    )
    errors = {error.msg.split(":")[0]: error for error in check_settings()}
    assert set(errors) == {"MASTRA_MEMORY options of OPTIONS", "MASTRA_MEMORY options of agent a"}
    assert {error.id for error in errors.values()} == {"mastra_memory.E002"}
    assert "last_messages" in errors["MASTRA_MEMORY options of agent a"].msg


def test_check_metric__refuses_unknown_metrics(memory_settings: Callable[..., None]) -> None:
    memory_settings(EMBEDDING_METRIC="manhattan")
    (error,) = check_metric()
    assert error.id == "mastra_memory.E003" and "cosine" in error.msg


def embed(dimensions: int, *, again: bool = False) -> None:
    """Store two messages with vectors of this length."""
    memory = Memory(options={"semanticRecall": True})
    memory.save_messages(some_messages(make_thread("alice", "t"), 2))
    if again:
        queue.enqueue(conf.app_settings().EMBEDDER, again=True)
    with FakeEmbedder(dimensions=dimensions):
        indexing.embed_pending(seconds=60)


ON_SQLITE = """
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "mastra_memory"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "migrate"])
"""


def test_check_database__explains_what_migrate_needs_on_sqlite() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", ON_SQLITE], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 1
    assert "mastra_memory.E011" in completed.stderr
    assert "needs PostgreSQL with pgvector; the database default is sqlite" in completed.stderr
    assert "SEQUENCE" not in completed.stderr


@pytest.mark.django_db
def test_check_vectors__is_silent_for_matching_vectors() -> None:
    assert check_vectors(databases=["default"]) == []
    embed(64)
    with FakeEmbedder(dimensions=64):
        assert check_vectors(databases=["default"]) == []


@pytest.mark.django_db
def test_check_vectors__runs_only_if_databases_are_checked(statements: Any) -> None:
    with statements() as sent:
        assert check_vectors() == check_vectors(databases=["other"]) == []
    assert sent == []


@pytest.mark.django_db
def test_check_vectors__reports_both_dimensions() -> None:
    embed(384)
    with FakeEmbedder(dimensions=256):
        (error,) = check_vectors(databases=["default"])
    assert error.id == "mastra_memory.E006"
    assert "384 dimensions" in error.msg and "256 dimensions" in error.msg
    embed(256, again=True)
    with FakeEmbedder(dimensions=256):
        assert check_vectors(databases=["default"]) == []


@pytest.mark.django_db
def test_check__reports_both_dimensions() -> None:
    embed(384)
    with FakeEmbedder(dimensions=256):
        with pytest.raises(SystemCheckError, match=r"256 dimensions, but .* 384 dimensions"):
            call_command("check", databases=["default"])


@pytest.mark.django_db
def test_check_vectors__reports_both_models(
    memory_settings: Callable[..., None],
) -> None:
    embed(384)
    memory_settings(EMBEDDER="new/model")
    with FakeEmbedder(dimensions=256):
        (error,) = check_vectors(databases=["default"])
    assert error.id == "mastra_memory.W007"
    assert "new/model (256 dimensions)" in error.msg and "(384 dimensions)" in error.msg


@pytest.mark.django_db
def test_check_vectors__reports_the_error_of_the_embedder() -> None:
    embed(64)
    with FakeEmbedder(error=ProviderRefused("no such file")):
        (error,) = check_vectors(databases=["default"])
    assert error.id == "mastra_memory.E005" and "no such file" in error.msg


@pytest.mark.django_db
def test_check_vectors__reports_many_vectors_without_an_index(
    memory_settings: Callable[..., None],
) -> None:
    memory_settings(EXACT_SEARCH_LIMIT=1)
    embed(64)
    with FakeEmbedder(dimensions=64):
        (error,) = check_vectors(databases=["default"])
    assert error.id == "mastra_memory.W008"


@pytest.mark.django_db
def test_check_vectors__reports_an_old_pgvector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MIN_PGVECTOR_VERSION", (99, 0))
    (error,) = check_vectors(databases=["default"])
    assert error.id == "mastra_memory.E004" and "ALTER EXTENSION" in str(error.hint)


@pytest.mark.parametrize(
    ("created", "available", "may_create", "expected"),
    [
        (None, None, True, "mastra_memory.E009"),
        (None, None, False, "mastra_memory.E009"),
        (None, "0.7.4", True, "mastra_memory.E004"),
        ("0.7.4", "0.8.1", True, "mastra_memory.E004"),
        ("0.10.0", "0.10.0", False, None),
        ("0.8.0", None, False, None),
        (None, "0.8.1", True, None),
        (None, "0.8.1", False, "mastra_memory.W010"),
    ],
)
def test_check_extension_version__reports_what_is_missing(
    created: str | None, available: str | None, may_create: bool, expected: str | None
) -> None:
    errors = checks.check_extension_version(created, available, may_create)
    assert [error.id for error in errors] == ([expected] if expected else [])


@pytest.mark.django_db
def test_check_vectors__reports_before_the_first_migration() -> None:
    sql.execute("DROP EXTENSION vector CASCADE")
    assert check_vectors(databases=["default"]) == []
    sql.execute("CREATE ROLE unprivileged")
    sql.execute("SET LOCAL ROLE unprivileged")
    (error,) = check_vectors(databases=["default"])
    assert error.id == "mastra_memory.W010" and "CREATE EXTENSION" in str(error.hint)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "10", None, True])
def test_check_limits__refuses_other_than_positive_integers(
    memory_settings: Callable[..., None], limit: object
) -> None:
    memory_settings(MAX_PARTS=limit)
    (error,) = setting_checks.check_limits()
    assert error.id == "mastra_memory.E020" and "MAX_PARTS" in error.msg


@pytest.mark.parametrize("days", [0, -1, "30", True, 1e9])
def test_check_retention__refuses_other_than_positive_numbers(
    memory_settings: Callable[..., None], days: object
) -> None:
    memory_settings(RETENTION_DAYS=days)
    (error,) = setting_checks.check_retention()
    assert error.id == "mastra_memory.E021"


@pytest.mark.parametrize("days", [None, 1, 0.5, 365])
def test_check_retention__accepts_days_and_none(
    memory_settings: Callable[..., None], days: object
) -> None:
    memory_settings(RETENTION_DAYS=days)
    assert setting_checks.check_retention() == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"REDACT": "email"}, "E022) MASTRA_MEMORY['REDACT'] must be a list"),
        ({"MODEL_TIMEOUT": "60"}, "E022) MASTRA_MEMORY['MODEL_TIMEOUT'] must be a number"),
        ({"CONTENT_SECURITY_POLICY": "yes"}, "must be True or False"),
        ({"PRICES": []}, "E022) MASTRA_MEMORY['PRICES'] must be a dict"),
        ({"RESOURCE_FOR_REQUEST": "shop.nowhere"}, "E023) MASTRA_MEMORY: RESOURCE_FOR_REQUEST"),
        ({"ADMIN_THREADS": "mastra_memory.conf.nothing"}, "E023) MASTRA_MEMORY: ADMIN_THREADS"),
        (
            {"REST_FRAMEWORK": {"DEFAULT_PERMISSION_CLASSES": ["shop.Nothing"]}},
            "E023) MASTRA_MEMORY: REST_FRAMEWORK DEFAULT_PERMISSION_CLASSES",
        ),
        ({"REDACT": ["emial"]}, "E024) REDACT has the unknown name 'emial'"),
        ({"REDACT": ["regex:("]}, "E024) REDACT has a broken expression"),
        ({"MODEL": "gpt-5"}, "E025) MASTRA_MEMORY: MODEL: The model must be named"),
        ({"MODEL": "local/nothing"}, "E025) MASTRA_MEMORY: MODEL: Unknown model local/nothing"),
        ({"EMBEDDER": "local/nothing"}, "E025) MASTRA_MEMORY: EMBEDDER: Unknown embedder"),
        ({"EMBEDDER": "shop.Embedder"}, "E025) MASTRA_MEMORY: EMBEDDER: No module named"),
        ({"EMBED_ALSO": ["fastembed/x"]}, "pip install 'django-mastra-memory[fastembed]'"),
        ({"SEARCH_LANGUAGE": "klingon"}, "E026) SEARCH_LANGUAGE"),
    ],
)
@pytest.mark.django_db
def test_check__finds_what_would_fail_later(
    memory_settings: Callable[..., None], values: Any, expected: str
) -> None:
    memory_settings(**values)
    with pytest.raises(SystemCheckError) as raised:
        call_command("check", databases=["default"])
    assert expected in str(raised.value)


def test_get_mask__refuses_a_misspelled_name(memory_settings: Callable[..., None]) -> None:
    memory_settings(REDACT=["emial", "phone"])
    with pytest.raises(InvalidInput, match="emial"):
        redaction.get_mask()


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (IsolationLevel.REPEATABLE_READ, "REPEATABLE READ"),
        (IsolationLevel.SERIALIZABLE, "SERIALIZABLE"),
        (3, "REPEATABLE READ"),
    ],
)
def test_check_isolation_level__warns(
    level: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", level)
    (warning,) = isolation.check_isolation_level()
    assert warning.id == "mastra_memory.W027" and name in warning.msg
    assert isolation.check_default_isolation_level(databases=["default"]) == []


@pytest.mark.parametrize("level", [IsolationLevel.READ_COMMITTED, "wrong", None])
def test_check_isolation_level__is_silent_for_others(
    level: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", level)
    assert isolation.check_isolation_level() == []


@pytest.mark.django_db
def test_check_isolation_level__asks_the_server() -> None:
    assert isolation.check_default_isolation_level(databases=["default"]) == []
    sql.execute("SET LOCAL default_transaction_isolation TO 'serializable'")
    assert isolation.check_default_isolation_level() == []
    (warning,) = isolation.check_default_isolation_level(databases=["default"])
    assert "SERIALIZABLE" in warning.msg
