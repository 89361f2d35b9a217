"""Tests of the command that deletes old threads, and of its task."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from mastra_memory import tasks
from mastra_memory.models import Thread
from tests.support.factories import make_thread, save, some_messages

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _threads() -> None:
    for name, days in (("old", 40), ("older", 400), ("new", 1)):
        save(some_messages(make_thread("alice", name), 2, prefix=name))
        then = timezone.now() - timedelta(days=days)
        Thread.objects.filter(pk=name).update(updated_at=then)


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("mastra_prune", *words, stdout=out)
    return out.getvalue()


def list_ids() -> list[str]:
    return sorted(Thread.objects.values_list("pk", flat=True))


@pytest.mark.parametrize(
    ("age", "kept"),
    [
        ("30d", ["new"]),
        ("8w", ["new", "old"]),
        ("1y", ["new", "old"]),
        ("2y", ["new", "old", "older"]),
    ],
)
def test_mastra_prune__deletes_by_age(age: str, kept: list[str]) -> None:
    deleted = 3 - len(kept)
    assert run("--older-than", age) == f"Deleted {deleted} threads, {2 * deleted} messages.\n"
    assert list_ids() == kept


def test_mastra_prune__a_dry_run_deletes_nothing() -> None:
    assert run("--older-than", "30d", "--dry-run").startswith("2 threads without activity since")
    assert len(list_ids()) == 3


@pytest.mark.parametrize("age", ["30", "0d", "-1d", "d", "1m", "1.5d", "²d", "99999y"])
def test_mastra_prune__refuses_unclear_ages(age: str) -> None:
    with pytest.raises(CommandError, match=r"days, weeks or years|expected one argument"):
        run("--older-than", age)
    assert len(list_ids()) == 3


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--older-than", "30d", "--status", "done"],
        ["--older-than", "30d", "--metadata", "[]"],
        ["--older-than", "30d", "--batch-size", "0"],
        ["--older-than", "30d", "--max-threads", "-1"],
    ],
)
def test_mastra_prune__explains_errors(words: list[str]) -> None:
    with pytest.raises(CommandError):
        run(*words)
    assert len(list_ids()) == 3


def test_retention__decides_what_the_task_deletes(settings: Any) -> None:
    assert tasks.prune() == 0
    settings.MASTRA_MEMORY = {**settings.MASTRA_MEMORY, "RETENTION_DAYS": 365}
    assert tasks.prune() == 1
    assert list_ids() == ["new", "old"]
    settings.MASTRA_MEMORY = {**settings.MASTRA_MEMORY, "RETENTION_DAYS": 30}
    assert run() == "Deleted 1 threads, 2 messages.\n"
