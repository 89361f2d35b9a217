"""Tests of reading mapping files."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.mapping import MAX_FILE_BYTES, FieldMapping, load_mapping

SMALL: dict[str, Any] = {"fields": {"thread": "ticket", "role": "author", "text": "body"}}


def load(tmp_path: Path, value: Any, name: str = "mapping.json") -> FieldMapping:
    text = value if isinstance(value, str) else json.dumps(value)
    (tmp_path / name).write_text(text)
    return load_mapping(tmp_path / name)


def test_load_mapping__yaml_and_json(tmp_path: Path) -> None:
    text = """
        name: shop
        fields: {thread: ticket, role: is_bot, text: [subject, body], owner: customer.id}
        roles: {true: assistant, false: user, Note: skip}
        defaults: {owner: 5}
        time: {format: seconds, zone: Europe/Paris}
        csv: {delimiter: ";", encoding: latin-1}
        ids: keep
    """
    mapping = load(tmp_path, text, "mapping.yaml")
    assert mapping.fields["text"] == ["subject", "body"]
    assert mapping.roles == {"true": "assistant", "false": "user", "note": "skip"}
    assert mapping.defaults == {"owner": "5"}
    assert (mapping.name, mapping.keeps_ids, mapping.has_owners) == ("shop", True, True)
    assert load(tmp_path, SMALL).fields == {
        "thread": ["ticket"], "role": ["author"], "text": ["body"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"field": {}}, "field is unknown; known keys: name, fields"),
        ({"fields": None}, "fields must be an object with the keys id, thread"),
        ({"fields": {"texts": "x"}}, "fields.texts is unknown"),
        ({"fields": {"thread": "t", "role": "r"}}, "fields.text is missing"),
        ({"fields": {"thread": "t", "text": "x"}}, "fields.role or defaults.role is missing"),
        ({"fields": {"role": "t", "text": "x"}}, "fields.thread or defaults.thread is missing"),
        ({"fields": {**SMALL["fields"], "role": ["a"]}}, "fields.role must be a text"),
        ({"fields": {**SMALL["fields"], "text": [{}]}}, "fields.text must be a text"),
        ({"roles": ["x"]}, "roles must be an object"),
        ({"roles": {"x": "robot"}}, "roles.x must be one of user, assistant, tool, skip"),
        ({"defaults": {"text": "x"}}, "defaults.text is unknown"),
        ({"ids": "random"}, "ids must be keep or derive"),
        ({"time": {"zone": "Mars/Base"}}, "time.zone must be a name such as Europe/Paris"),
        ({"time": {"zone": "../../etc/passwd"}}, "time.zone must be a name"),
        ({"csv": {"encoding": "klingon"}}, "csv.encoding must be a name such as utf-8"),
        ({"csv": {"delimiter": "||"}}, "csv.delimiter must be one character"),
    ],
)
def test_load_mapping__invalid_value_is_named(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=r"mapping\.json is invalid") as refused:
        load(tmp_path, SMALL | changes)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fields: [", "it is not YAML"),
        ("!!python/object/apply:os.system [ls]", "it is not YAML"),
        ("just a text", "it must be an object"),
        ("", "it must be an object"),
        ("[" * 5000, "it is not YAML"),
        ("x" * (MAX_FILE_BYTES + 1), "is larger than 100,000 bytes"),
    ],
)
def test_load_mapping__invalid_yaml_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load(tmp_path, text, "mapping.yaml")
    assert reason in str(refused.value)


def test_load_mapping__missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        load_mapping(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        ({}, "2024-05-01T10:00:00.123456+02:00", "2024-05-01T08:00:00.123"),
        ({}, " 2024-05-01 10:00 ", "2024-05-01T10:00:00.000"),
        ({}, "2024-05-01", "2024-05-01T00:00:00.000"),
        ({}, 1714557600, "2024-05-01T10:00:00.000"),
        ({}, "1714557600.5", "2024-05-01T10:00:00.500"),
        ({}, 1714557600123, "2024-05-01T10:00:00.123"),
        ({"time": {"format": "milliseconds"}}, 1000, "1970-01-01T00:00:01.000"),
        ({"time": {"format": "seconds"}}, "253402300799", "9999-12-31T23:59:59.000"),
        ({"time": {"format": "%d.%m.%Y %H:%M", "zone": "Europe/Paris"}}, "01.05.2024 10:00",
         "2024-05-01T08:00:00.000"),
        ({"time": {"zone": "America/New_York"}}, "2024-01-01 00:00", "2024-01-01T05:00:00.000"),
    ],
)  # fmt: skip
def test_parse_time__known_forms(
    tmp_path: Path, options: dict[str, Any], value: Any, expected: str
) -> None:
    time = load(tmp_path, SMALL | options).parse_time(value)
    assert time.astimezone(UTC) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize("value", ["yesterday", "1e400", "nan", [], True, "2024-13-01", "9" * 40])
def test_parse_time__other_values_are_errors(tmp_path: Path, value: Any) -> None:
    with pytest.raises((ValueError, OverflowError)):
        load(tmp_path, SMALL).parse_time(value)
