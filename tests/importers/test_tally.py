"""Counting, and the report."""

import io
import json

from mastra_memory.importers import report as tally
from mastra_memory.importers.records import LeftOut, Remark
from mastra_memory.importers.report import Tally


def test_lines__a_table_that_adds_up_then_reasons() -> None:
    counted = Tally()
    counted.count("threads", "stored", 1234)
    counted.count("messages", "stored", 5)
    counted.count("messages", "already there", 2)
    counted.leave_out(LeftOut("messages", "joined", "here", "result of a tool call"))
    for _ in range(2):
        counted.leave_out(LeftOut("messages", "skipped", "here", "role system"))
    counted.leave_out(LeftOut("threads", "refused", "there", "not valid JSON"))
    counted.remark(Remark("odd things"))
    head, threads, messages, *rest = counted.lines()
    columns = ["read", "stored", "already", "there", "joined", "skipped", "refused"]
    assert head.split() == columns
    assert threads.split() == ["threads", "1,235", "1,234", "0", "0", "0", "1"]
    assert messages.split() == ["messages", "10", "5", "2", "1", "2", "0"]
    assert rest == [
        "skipped: 2 messages: role system",
        "refused: 1 threads: not valid JSON",
        "note: 1 odd things",
    ]
    assert (counted.understood, counted.left_out) == (1244, 3)


def test_leave_out__one_line_of_json_each() -> None:
    report = io.BytesIO()
    counted = Tally(report)
    counted.leave_out(LeftOut("messages", "refused", "x.json:3", "unknown role ü", '{"a'))
    counted.leave_out(LeftOut("messages", "joined", "x.json:4", "result of a tool call"))
    (line,) = report.getvalue().splitlines()
    assert json.loads(line) == {
        "outcome": "refused",
        "kind": "messages",
        "where": "x.json:3",
        "reason": "unknown role ü",
        "detail": '{"a',
    }


def test_leave_out__endless_reasons_do_not_fill_the_memory() -> None:
    counted = Tally()
    for number in range(1000):
        counted.leave_out(LeftOut("messages", "refused", "here", f"unknown role {number}"))
    lines = list(counted.lines())
    assert len(lines) <= tally.REASONS + 5
    assert f"refused: {1000 - tally.REASONS} messages: other reasons" in lines
