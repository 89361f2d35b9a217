"""Deleting messages over HTTP."""

from typing import Any

import pytest

from mastra_memory.models import Message
from tests.conftest import Person
from tests.support.api_client import Api, fields_of, ids
from tests.support.factories import a_message, make_thread, save, some_messages


def delete(api: Api, message_ids: Any) -> str:
    """Delete messages and return the text of the answer."""
    answer = api.post("messages/delete", {"messageIds": message_ids})
    assert answer.status == 200, answer.raw
    assert answer.body["success"] is True
    text: str = answer.body["message"]
    return text


@pytest.mark.parametrize(
    ("message_ids", "count"),
    [
        ("m0", 1),
        (["m0", "m1"], 2),
        ({"id": "m0"}, 1),
        ([{"id": "m0"}, {"id": "m1"}], 2),
        (["m0", "m0"], 1),
        (["m0", "missing"], 1),
        ("missing", 0),
        (["missing"] * 3, 0),
        ([], 0),
    ],
)
def test_delete__returns_the_number_of_existing_messages(
    api: Api, message_ids: Any, count: int
) -> None:
    save(some_messages(make_thread("r", "t"), 3))
    noun = "message" if count == 1 else "messages"
    assert delete(api, message_ids) == f"{count} {noun} deleted successfully"
    assert Message.objects.count() == 3 - count
    assert delete(api, message_ids).startswith("0 ")


@pytest.mark.parametrize(
    "message_ids", ["", [""], 5, [5], None, {}, [{}], [{"id": 5}], ["m0", {"id": "m1"}], [[]], True]
)
def test_delete__bad_ids_are_400_and_nothing_is_deleted(api: Api, message_ids: Any) -> None:
    save(some_messages(make_thread("r"), 3))
    answer = api.post("messages/delete", {"messageIds": message_ids})
    assert fields_of(answer) == ["messageIds"]
    assert Message.objects.count() == 3


def test_delete__a_resource_that_does_not_own_them_all_is_403(api: Api) -> None:
    save([a_message(make_thread("r"), "mine"), a_message(make_thread("s"), "theirs")])
    both = {"messageIds": ["mine", "theirs"]}
    assert api.post("messages/delete", both, {"resourceId": "r"}).status == 403
    assert Message.objects.count() == 2
    assert api.post("messages/delete", both).status == 200
    assert not Message.objects.exists()


def test_delete__a_scoped_caller_deletes_only_their_own(alice: Person, bob: Person) -> None:
    mine, his = make_thread(alice.resource_id), make_thread(bob.resource_id)
    save([a_message(mine, "mine"), a_message(his, "his")])
    for form in ("his", ["his"], {"id": "his"}, [{"id": "his"}], ["mine", "his"]):
        answer = alice.api.post("messages/delete", {"messageIds": form})
        assert answer.status == 403 and his.id not in str(answer.body)
    assert Message.objects.count() == 2
    assert delete(alice.api, "mine").startswith("1 ")


def test_delete__a_deleted_message_can_be_saved_again(api: Api) -> None:
    thread = make_thread("r", "t")
    save([a_message(thread, "m1", at=1), a_message(thread, "m2", at=1)])
    delete(api, "m1")
    save([a_message(thread, "m1", at=1)])
    assert ids(api.get("threads/t/messages")) == ["m2", "m1"]
