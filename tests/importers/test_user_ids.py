"""Tests of finding resource ids that are the ids of users."""

import uuid

import pytest

from mastra_memory.db import users
from mastra_memory.importers import user_ids
from mastra_memory.importers.records import ImportedThread
from mastra_memory.importers.validation import ImportRow
from tests.support.factories import make_user, moment

pytestmark = pytest.mark.django_db


def row(resource_id: str) -> ImportRow:
    return ImportRow(
        ImportedThread(
            id="t",
            resource_id=resource_id,
            created_at=moment(),
            updated_at=moment(),
            location="here",
        )
    )


def test_check_rows__warns_once_about_each_user() -> None:
    ann, ben = make_user("ann"), make_user("ben")
    warned: list[str] = []
    watch = user_ids.UserIdWarning(warned.append)
    watch.check_rows([row(str(ann.pk)), row("customer-1"), row(str(ann.pk))])
    watch.check_rows([row(str(ann.pk)), row(str(ben.pk))])
    assert warned == [str(ann.pk), str(ben.pk)]


def test_find_user_ids__requires_the_canonical_form() -> None:
    pk = str(make_user("ann").pk)
    odd = [f"0{pk}", f" {pk}", f"{pk}.0", "-1", "9" * 30, str(uuid.uuid4()), "", "ü", "a\x00"]
    assert users.find_user_ids([pk, *odd]) == {pk}
