"""Ids, and the metadata keys that filters accept."""

from typing import Any

import pytest

from mastra_memory.db.identifiers import check_id, check_metadata_keys
from mastra_memory.exceptions import InvalidInput


@pytest.mark.parametrize("value", ["a", "a/b", "ü☃", " ", "i" * 1024, "☃" * 341])
def test_check_id__accepts_any_text_up_to_1024_bytes(value: str) -> None:
    assert check_id(value, "id") == value


def test_check_id__measures_the_cleaned_id() -> None:
    assert check_id("\x00" * 341, "id") == "\ufffd" * 341
    with pytest.raises(InvalidInput):
        check_id("\x00" * 342, "id")


@pytest.mark.parametrize("value", ["", "i" * 1025, "☃" * 342, None, 5, True, [], {}, b"x"])
def test_check_id__refuses_and_names_everything_else(value: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_id(value, "threadId")
    assert [issue.field for issue in refused.value.issues] == ["threadId"]


@pytest.mark.parametrize("key", ["a", "_", "A1_b", "k" * 128])
def test_check_metadata_keys__accepts_identifiers(key: str) -> None:
    check_metadata_keys({key: 1}, "metadata")


@pytest.mark.parametrize(
    "key",
    ["", "1a", "a.b", "a-b", "a b", "a\n", "é", "k" * 129, "__proto__", "prototype", "constructor"],
)
def test_check_metadata_keys__refuses_and_names_everything_else(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_metadata_keys({"fine": 1, key: 1}, "metadata")
    assert [issue.field for issue in refused.value.issues] == [f"metadata.{key}"]
