"""Limits on the length of lists and texts, and the errors that name what is too long."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mastra_memory import conf
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory
from mastra_memory.models import Message, Thread, WorkingMemory
from mastra_memory.threads import cloning
from mastra_memory.types import MessageSelection
from tests.support.api_client import Api, fields_of
from tests.support.factories import a_message, make_thread, some_messages

pytestmark = pytest.mark.django_db

SettingsChange = Callable[..., None]


def test_save_messages__limits_the_batch(api: Api, memory_settings: SettingsChange) -> None:
    memory_settings(MAX_MESSAGES_PER_SAVE=3)
    thread = make_thread("r", "t")
    assert api.post("save-messages", {"messages": some_messages(thread, 3)}).status == 200
    refused = api.post("save-messages", {"messages": some_messages(thread, 4)})
    assert fields_of(refused) == ["messages"] and "at most 3 items, not 4" in refused.body["error"]
    with pytest.raises(InvalidInput, match="messages may hold at most 3 items"):
        Memory().save_messages(some_messages(thread, 4))
    with pytest.raises(InvalidInput, match="messages may hold at most 3 items"):
        Memory().update_messages([{"id": f"{number}"} for number in range(4)])
    assert Message.objects.count() == 3


def test_context__limits_new_messages(api: Api, memory_settings: SettingsChange) -> None:
    memory_settings(MAX_NEW_MESSAGES=2)
    make_thread("r", "t")
    for count, status in ((2, 200), (3, 400)):
        body = {"newMessages": ["hello"] * count}
        assert api.post("threads/t/context", body).status == status
        assert api.get("threads/t/context", body).status == status
    assert fields_of(api.post("threads/t/context", {"newMessages": [0] * 3})) == ["newMessages"]

    def endless() -> Iterator[str]:
        while True:
            yield "more"

    with pytest.raises(InvalidInput, match="at most 2 items"):
        Memory().context("t", new_messages=endless())
    with pytest.raises(InvalidInput, match="at most 2 items"):
        Memory().save_turn("t", endless())
    assert not Message.objects.exists()


def test_message_ids__are_limited_everywhere(api: Api, memory_settings: SettingsChange) -> None:
    memory_settings(MAX_IDS=2)
    make_thread("r", "t")
    ids = ["a", "b", "c"]
    for message_ids in (ids, [{"id": message_id} for message_id in ids]):
        assert fields_of(api.post("messages/delete", {"messageIds": message_ids})) == ["messageIds"]
        assert api.post("messages/delete", {"messageIds": message_ids[:2]}).status == 200
    body = {"options": {"messageFilter": {"messageIds": ids}}}
    refused = api.post("threads/t/clone", body)
    assert fields_of(refused) == ["options.messageFilter.messageIds"]
    calls: list[Callable[[], Any]] = [
        lambda: Memory().delete_messages(ids),
        lambda: Memory().get_messages(ids),
        lambda: Memory().list_messages(thread_ids=ids),
        lambda: cloning.clone_thread("t", selection=MessageSelection(message_ids=ids)),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="at most 2 items"):
            call()
    assert Thread.objects.count() == 1


def test_save_messages__limits_parts_call_ids_and_size(
    api: Api, memory_settings: SettingsChange
) -> None:
    memory_settings(MAX_PARTS=3, MAX_MESSAGE_BYTES=5_000)
    thread = make_thread("r", "t")
    text = {"type": "text", "text": "x"}
    call = {"state": "call", "toolCallId": "c" * 1_025, "toolName": "look", "args": {}}
    refused_contents: dict[str, Any] = {
        "content.parts": {"format": 2, "parts": [text] * 4},
        "content.parts.1.toolCallId": {
            "format": 2,
            "parts": [text, {"type": "tool-invocation", "toolInvocation": call}],
        },
        "content": "☃" * 1_700,
    }
    for field, content in refused_contents.items():
        batch = [a_message(thread), a_message(thread) | {"content": content}]
        refused = api.post("save-messages", {"messages": batch})
        assert fields_of(refused) == [f"messages.1.{field}"], refused.body
    for field, value in {"type": "x" * 1_025}.items():
        batch = [a_message(thread, content={"format": 2, "parts": [text]}) | {field: value}]
        assert fields_of(api.post("save-messages", {"messages": batch})) == [f"messages.0.{field}"]
    assert not Message.objects.exists()
    fits = [a_message(thread) | {"content": {"format": 2, "parts": [text] * 3}}]
    assert api.post("save-messages", {"messages": fits}).status == 200


def test_title__is_limited_wherever_it_is_set(api: Api, memory_settings: SettingsChange) -> None:
    memory_settings(MAX_TITLE_LENGTH=10)
    fits, long = "☃" * 10, "x" * 11
    assert api.post("threads", {"resourceId": "r", "threadId": "t", "title": fits}).status == 200
    for answer in (
        api.post("threads", {"resourceId": "r", "title": long}),
        api.patch("threads/t", {"title": long}),
        api.post("threads/t/clone", {"title": long}),
    ):
        assert fields_of(answer) == ["title"] and "at most 10 characters" in answer.body["error"]
    with pytest.raises(InvalidInput):
        Memory().save_thread("t", "r", title=long)
    assert list(Thread.objects.values_list("title", flat=True)) == [fits]


def test_working_memory__is_limited(api: Api, memory_settings: SettingsChange) -> None:
    memory_settings(OPTIONS={"workingMemory": {"enabled": True}}, MAX_WORKING_MEMORY_BYTES=10)
    make_thread("r", "t")
    path = "threads/t/working-memory"
    assert api.post(path, {"workingMemory": "x" * 10}).status == 200
    assert fields_of(api.post(path, {"workingMemory": "☃" * 4})) == ["workingMemory"]
    metadata = {"workingMemory": "x" * 11}
    assert fields_of(api.patch("threads/t", {"metadata": metadata})) == ["workingMemory"]
    assert [memory.content for memory in WorkingMemory.objects.all()] == ["x" * 10]


def test_app_settings__defaults_accept_what_mastra_clients_send() -> None:
    defaults = conf.app_settings()
    assert defaults.MAX_TITLE_LENGTH >= 22_000
    assert defaults.MAX_MESSAGES_PER_SAVE >= 1_000 and defaults.MAX_PARTS >= 100
