"""Complete texts as plain text."""

from typing import Any

from mastra_memory.admin import plain_text


def nest(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def test_iterate_json_texts__indents_json() -> None:
    assert "".join(plain_text.iterate_json_texts({"a": [1]})) == '{\n  "a": [\n    1\n  ]\n}'


def test_iterate_json_texts__does_not_indent_deeply_nested_json() -> None:
    value = nest(list(range(10_000)), 250)
    assert len("".join(plain_text.iterate_json_texts(value))) < 60_000
