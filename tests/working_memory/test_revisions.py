"""What a working memory was, and the way back."""

from typing import Any

import pytest

from mastra_memory.exceptions import FeatureDisabled, InvalidInput
from mastra_memory.memory import Memory
from tests.support.factories import make_thread, make_user

ON: dict[str, Any] = {"workingMemory": {"enabled": True}}


@pytest.mark.django_db
@pytest.mark.parametrize("scope", ["resource", "thread"])
def test_list__newest_first_with_author_and_source(scope: str) -> None:
    make_thread("r", "t")
    memory = Memory(options={"workingMemory": {"enabled": True, "scope": scope}})
    ann = make_user("ann")
    memory.update_working_memory("t", "one")
    memory.update_working_memory("t", "two", source="admin", author_id=ann.pk)
    page = memory.list_working_memory_revisions("t")
    revisions = [(one.version, one.content, one.source, one.author) for one in page.revisions]
    assert revisions == [(2, "two", "admin", "ann"), (1, "one", "python", "")]
    assert (page.total, page.has_more) == (2, False)


@pytest.mark.django_db
def test_list__in_pages(statements: Any) -> None:
    make_thread("r", "t")
    memory = Memory(options=ON)
    for number in range(5):
        memory.update_working_memory("t", f"text {number}", author_id=make_user(f"u{number}").pk)
    with statements() as sent:
        page = memory.list_working_memory_revisions("t", resource_id="r", page=1, per_page=2)
    assert [one.version for one in page.revisions] == [3, 2]
    assert (page.total, page.has_more, len(sent)) == (5, True, 4)
    last = memory.list_working_memory_revisions("t", page=2, per_page=2)
    assert ([one.version for one in last.revisions], last.has_more) == ([1], False)
    assert memory.list_working_memory_revisions("t", page=9).revisions == []


@pytest.mark.django_db
def test_restore__is_a_change_of_its_own() -> None:
    make_thread("r", "t")
    memory = Memory(options=ON)
    for text in ("one", "two"):
        memory.update_working_memory("t", text)
    assert memory.restore_working_memory("t", 1) == 3
    assert memory.get_working_memory("t") == "one"
    assert memory.restore_working_memory("t", 2) == 4
    assert memory.get_working_memory("t") == "two"


@pytest.mark.django_db
@pytest.mark.parametrize("version", [0, 2, -1, 2**70])
def test_restore__an_unknown_version_is_refused(version: int) -> None:
    make_thread("r", "t")
    memory = Memory(options=ON)
    memory.update_working_memory("t", "one")
    with pytest.raises(InvalidInput, match="no version"):
        memory.restore_working_memory("t", version)
    assert memory.get_working_memory("t") == "one"


@pytest.mark.django_db
def test_revisions__of_another_resource_are_not_reached() -> None:
    make_thread("r", "t"), make_thread("s", "u")
    memory = Memory(options=ON)
    memory.update_working_memory("t", "mine")
    assert memory.list_working_memory_revisions("u").total == 0
    with pytest.raises(InvalidInput):
        memory.restore_working_memory("u", 1)


@pytest.mark.django_db
def test_revisions__need_working_memory() -> None:
    off = Memory(options={"workingMemory": {"enabled": False}})
    with pytest.raises(FeatureDisabled):
        off.list_working_memory_revisions("t")
    with pytest.raises(FeatureDisabled):
        off.restore_working_memory("t", 1)
