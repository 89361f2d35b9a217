"""Tests of the import report."""

import io
import json

from mastra_memory.importers import report as report
from mastra_memory.importers.records import ImportNote, OmittedRecord
from mastra_memory.importers.report import ImportReport


def test_format_lines__table_then_reasons_and_notes() -> None:
    import_report = ImportReport()
    import_report.add("threads", "stored", 1234)
    import_report.add("messages", "stored", 5)
    import_report.add("messages", "already there", 2)
    import_report.add_omitted(OmittedRecord("messages", "joined", "here", "result of a tool call"))
    for _ in range(2):
        import_report.add_omitted(OmittedRecord("messages", "skipped", "here", "role system"))
    import_report.add_omitted(OmittedRecord("threads", "refused", "there", "not valid JSON"))
    import_report.add_note(ImportNote("odd things"))
    head, threads, messages, *rest = import_report.format_lines()
    columns = ["read", "stored", "already", "there", "joined", "skipped", "refused"]
    assert head.split() == columns
    assert threads.split() == ["threads", "1,235", "1,234", "0", "0", "0", "1"]
    assert messages.split() == ["messages", "10", "5", "2", "1", "2", "0"]
    assert rest == [
        "skipped: 2 messages: role system",
        "refused: 1 threads: not valid JSON",
        "note: 1 odd things",
    ]
    assert (import_report.parsed_count, import_report.omitted_count) == (1244, 3)


def test_add_omitted__writes_one_line_of_json_each() -> None:
    report = io.BytesIO()
    import_report = ImportReport(report)
    import_report.add_omitted(
        OmittedRecord("messages", "refused", "x.json:3", "unknown role ü", '{"a')
    )
    import_report.add_omitted(
        OmittedRecord("messages", "joined", "x.json:4", "result of a tool call")
    )
    (line,) = report.getvalue().splitlines()
    assert json.loads(line) == {
        "outcome": "refused",
        "kind": "messages",
        "where": "x.json:3",
        "reason": "unknown role ü",
        "detail": '{"a',
    }


def test_add_omitted__limits_the_number_of_reasons() -> None:
    import_report = ImportReport()
    for number in range(1000):
        import_report.add_omitted(
            OmittedRecord("messages", "refused", "here", f"unknown role {number}")
        )
    lines = list(import_report.format_lines())
    assert len(lines) <= report.MAX_REASONS + 5
    assert f"refused: {1000 - report.MAX_REASONS} messages: other reasons" in lines
