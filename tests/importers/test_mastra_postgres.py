"""Tests of importing Mastra's PostgreSQL databases, from another schema of the test database."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import sources
from mastra_memory.importers.records import ResourceMapping
from mastra_memory.importers.report import ImportReport
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory
from tests.support.importing import count_outcomes, import_items, list_texts
from tests.support.mastra_databases import (
    Rows,
    make_message_row,
    make_postgres,
    make_record_row,
    make_resource_row,
    make_thread_row,
)

SCHEMA = "Mastra's"


def address() -> str:
    """Return the URL of the test database."""
    facts = connection.settings_dict
    named = ((key.lower(), facts[key]) for key in ("HOST", "PORT", "USER", "PASSWORD"))
    return f"postgresql:///{facts['NAME']}?{urlencode([(k, v) for k, v in named if v])}"


@pytest.fixture
def schema(transactional_db: None) -> Iterator[str]:
    """Create a schema that other connections can see, and drop it after the test."""
    yield SCHEMA
    with connection.cursor() as cursor:
        cursor.execute(f'DROP SCHEMA IF EXISTS "{SCHEMA}" CASCADE')


def fill(schema: str, rows: Rows) -> None:
    with connection.cursor() as cursor:
        make_postgres(cursor.execute, schema, rows)


def load(schema: str, **options: Any) -> ImportReport:
    with sources.open_source(address(), schema=schema) as source:
        return import_items(source.read(ResourceMapping()), **options)


def test_read__second_import_of_a_database_changes_nothing(schema: str) -> None:
    rows = {
        "mastra_threads": [
            make_thread_row(metadata={"workingMemory": "w", "k": [1.5, None, 10**30]})
        ],
        "mastra_resources": [make_resource_row("r1", "known", metadata="{}")],
        "mastra_messages": [make_message_row(name, createdAtZ=None) for name in "ba"],
        "mastra_observational_memory": [make_record_row("o1", 0), make_record_row("o2", 1)],
    }
    fill(schema, rows)
    report = load(schema)
    assert Thread.objects.get().metadata == {"k": [1.5, None, 10**30]}
    assert [text for _, text in list_texts()] == ["a", "b"]  # as Mastra lists them
    assert WorkingMemory.objects.count() == 2
    assert ObservationalRecord.objects.count() == 2
    assert count_outcomes(report, "messages") == {"stored": 2}
    again = load(schema)
    assert (
        count_outcomes(again, "messages")
        == count_outcomes(again, "observations")
        == {"already there": 2}
    )


def test_read__prefers_times_with_a_time_zone(schema: str) -> None:
    zoned = make_thread_row(
        createdAt="2020-01-01 00:00:00", createdAtZ="2024-01-01 12:00:00.123+02"
    )
    plain = make_thread_row("t2", createdAt="2024-01-01 10:00:00.456", createdAtZ=None)
    fill(schema, {"mastra_threads": [zoned, plain], "mastra_messages": []})
    load(schema)
    moments = Thread.objects.order_by("id").values_list("created_at", flat=True)
    shown = [moment.isoformat(timespec="milliseconds") for moment in moments]
    assert shown == ["2024-01-01T10:00:00.123+00:00", "2024-01-01T10:00:00.456+00:00"]


def test_read__ignores_default_values_of_cursors(schema: str) -> None:
    """Columns with a time zone have the time of the insert as their default."""
    fill(
        schema,
        {"mastra_threads": [make_thread_row()], "mastra_observational_memory": [make_record_row()]},
    )
    load(schema)
    found = ObservationalRecord.objects.get()
    assert (found.last_observed_at, found.last_buffered_at_time) == (None, None)


def test_read__reads_cursors(schema: str) -> None:
    moments: dict[str, Any] = {
        "lastObservedAt": "2024-01-01 10:00:00.125",
        "lastObservedAtZ": "2024-01-01 10:00:00.125+00",
        "lastBufferedAtTime": "2024-01-01 10:00:00.789",
        "lastBufferedAtTimeZ": "2030-01-01 00:00:00+00",
    }
    rows = [make_record_row(**moments)]
    fill(schema, {"mastra_threads": [make_thread_row()], "mastra_observational_memory": rows})
    load(schema)
    found = ObservationalRecord.objects.get()
    assert found.last_observed_at and found.last_observed_at.isoformat().startswith(
        "2024-01-01T10:00:00.125"
    )
    assert found.last_buffered_at_time and found.last_buffered_at_time.isoformat().startswith(
        "2024-01-01T10:00:00.789"
    )


def test_read__times_out_of_range_are_refused_alone(schema: str) -> None:
    rows = [
        make_message_row("a", createdAt="infinity", createdAtZ=None),
        make_message_row("b", createdAt="20000-01-01 00:00:00", createdAtZ=None),
        make_message_row("c"),
    ]
    fill(schema, {"mastra_threads": [make_thread_row()], "mastra_messages": rows})
    report = load(schema)
    assert count_outcomes(report, "messages") == {"stored": 1, "refused": 2}


def test_open_source__connection_is_read_only(schema: str) -> None:
    fill(schema, {})
    with sources.open_source(address(), schema=schema) as source:
        assert source.size == 0
    assert Message.objects.count() == 0


def test_open_source__missing_tables_suggest_the_schema_option(schema: str) -> None:
    with pytest.raises(InvalidInput, match="--schema"):
        load("nowhere")


def test_open_source__connection_error_hides_the_password() -> None:
    with (
        pytest.raises(InvalidInput, match="cannot be reached") as caught,
        sources.open_source("postgresql://me:secret-word@127.0.0.1:1/x"),
    ):
        pass
    assert "secret-word" not in str(caught.value)
