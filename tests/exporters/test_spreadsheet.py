"""Exports as CSV for spreadsheets."""

import csv
import io
import json

import pytest

from mastra_memory.exporters import spreadsheet
from tests.support.exporting import make_conversation, run_export, tool_part
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db


def export_rows() -> list[dict[str, str]]:
    text, _ = run_export(spreadsheet)
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def test_export__writes_a_row_for_each_message() -> None:
    make_conversation(("user", 'Say "ü",\nplease'), ("assistant", "ü"))
    first, second = export_rows()
    assert first == {
        "thread_id": "t1",
        "resource_id": "alice",
        "thread_title": "A talk",
        "message_id": "t1:0",
        "created_at": "2024-01-01T00:00:00.000Z",
        "role": "user",
        "text": 'Say "ü",\nplease',
        "tools": "",
    }
    assert second["text"] == "ü"


def test_export__writes_tool_calls_as_json() -> None:
    make_conversation(("assistant", [tool_part("f", {"x": 1}, result=[2])]))
    (row,) = export_rows()
    assert json.loads(row["tools"]) == [
        {"name": "f", "state": "result", "args": {"x": 1}, "result": [2]}
    ]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_export__escapes_formulas(text: str) -> None:
    make_conversation(("user", text), thread=make_thread("alice", "t1", title=text))
    (row,) = export_rows()
    assert row["thread_title"] == f"'{text}"
    assert row["text"] == f"'{text.strip()}"


def test_export__names_the_uploads_of_a_message_without_text() -> None:
    make_conversation(("user", [{"type": "file", "filename": "budget.xlsx"}]))
    (row,) = export_rows()
    assert row["text"] == "[budget.xlsx]"
