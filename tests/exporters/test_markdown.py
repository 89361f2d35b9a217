"""Exports in Markdown."""

import pytest

from mastra_memory.exporters import markdown
from tests.support.exporting import make_conversation, run_export, tool_part
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db


EXPECTED = """# A talk

Thread `t1` of `alice`, CREATED

## user, 2024-01-01 00:00:00 UTC

Hello

there

## assistant, 2024-01-01 00:00:01 UTC

> Hm.
>
> Yes.

Tool call `weather` (result)

```json
{
  "city": "Paris"
}
```

```
21 degrees
```

It is 21.

"""


def test_export__writes_a_conversation() -> None:
    thread = make_conversation(
        ("user", " Hello\n\nthere "),
        ("assistant", [
            {"type": "reasoning", "reasoning": "Hm.\n\nYes."},
            tool_part("weather", {"city": "Paris"}, result="21 degrees"),
            {"type": "text", "text": "It is 21."},
        ]),
    )  # fmt: skip
    text, counts = run_export(markdown)
    created = thread.created_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    assert text == EXPECTED.replace("CREATED", created)
    assert (counts.threads, counts.messages) == (1, 2)


def test_export__a_fence_is_longer_than_those_inside() -> None:
    make_conversation(("assistant", [tool_part("f", "````\nx\n````")]))
    text, _ = run_export(markdown)
    assert "`````\n````\nx\n````\n`````" in text


def test_export__writes_files_sources_and_unknown_parts() -> None:
    make_conversation(("assistant", [
        {"type": "file", "data": "https://example.com/a.pdf", "filename": "a.pdf"},
        {"type": "file", "data": "AAAA", "mimeType": "image/png"},
        {"type": "source", "source": {"url": "https://example.com", "title": "Example"}},
        {"type": "x-odd", "k": 1},
    ]))  # fmt: skip
    text, _ = run_export(markdown)
    assert "[a.pdf](<https://example.com/a.pdf>)" in text
    assert "[image/png, 3 B]" in text
    assert "Source: [Example](<https://example.com>)" in text
    assert '"k": 1' in text


def test_export__heading_is_one_line_and_defaults_to_the_id() -> None:
    make_thread("alice", "t1", title="Two\nlines")
    make_thread("alice", "t2")
    text, _ = run_export(markdown)
    assert "# Two lines\n" in text and "# t2\n" in text
