"""Counting, and the report."""

import io
import json

from mastra_memory.importers import report as report
from mastra_memory.importers.records import ImportNote, OmittedRecord
from mastra_memory.importers.report import ImportReport


def test_lines__a_table_that_adds_up_then_reasons() -> None:
    counted = ImportReport()
    counted.add("threads", "stored", 1234)
    counted.add("messages", "stored", 5)
    counted.add("messages", "already there", 2)
    counted.add_omitted(OmittedRecord("messages", "joined", "here", "result of a tool call"))
    for _ in range(2):
        counted.add_omitted(OmittedRecord("messages", "skipped", "here", "role system"))
    counted.add_omitted(OmittedRecord("threads", "refused", "there", "not valid JSON"))
    counted.add_note(ImportNote("odd things"))
    head, threads, messages, *rest = counted.format_lines()
    columns = ["read", "stored", "already", "there", "joined", "skipped", "refused"]
    assert head.split() == columns
    assert threads.split() == ["threads", "1,235", "1,234", "0", "0", "0", "1"]
    assert messages.split() == ["messages", "10", "5", "2", "1", "2", "0"]
    assert rest == [
        "skipped: 2 messages: role system",
        "refused: 1 threads: not valid JSON",
        "note: 1 odd things",
    ]
    assert (counted.parsed_count, counted.omitted_count) == (1244, 3)


def test_leave_out__one_line_of_json_each() -> None:
    report = io.BytesIO()
    counted = ImportReport(report)
    counted.add_omitted(OmittedRecord("messages", "refused", "x.json:3", "unknown role ü", '{"a'))
    counted.add_omitted(OmittedRecord("messages", "joined", "x.json:4", "result of a tool call"))
    (line,) = report.getvalue().splitlines()
    assert json.loads(line) == {
        "outcome": "refused",
        "kind": "messages",
        "where": "x.json:3",
        "reason": "unknown role ü",
        "detail": '{"a',
    }


def test_leave_out__endless_reasons_do_not_fill_the_memory() -> None:
    counted = ImportReport()
    for number in range(1000):
        counted.add_omitted(OmittedRecord("messages", "refused", "here", f"unknown role {number}"))
    lines = list(counted.format_lines())
    assert len(lines) <= report.MAX_REASONS + 5
    assert f"refused: {1000 - report.MAX_REASONS} messages: other reasons" in lines
