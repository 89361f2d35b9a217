"""Tests of building a thread from the messages of a conversation."""

from datetime import timedelta
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.importers.conversation import ConversationBuilder
from mastra_memory.importers.records import ImportedMessage, ImportedThread
from tests.support.factories import moment


def make_builder() -> ConversationBuilder:
    return ConversationBuilder("t1", "alice", moment(100), "here")


def make_text(value: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": value}]


def make_call(call_id: str, tool: str) -> list[dict[str, Any]]:
    return [normalization.build_call_part(call_id, tool, {})]


def list_messages(builder: ConversationBuilder) -> list[ImportedMessage]:
    return [item for item in builder.build_items() if isinstance(item, ImportedMessage)]


def test_build_items__thread_comes_first_and_ids_are_stable() -> None:
    first, second = make_builder(), make_builder()
    for each in (first, second):
        each.add_message("a", "user", make_text("x"))
    assert isinstance(next(first.build_items()), ImportedThread)
    assert list_messages(first) == list_messages(second)
    assert len({message.id for message in list_messages(first)}) == 1


def test_add_message__times_never_decrease() -> None:
    builder = make_builder()
    builder.add_message("a", "user", make_text("1"))
    builder.add_message("b", "user", make_text("2"), time=moment(300))
    builder.add_message("c", "user", make_text("3"), time=moment(200))
    builder.add_message("d", "user", make_text("4"))
    tick = timedelta(milliseconds=1)
    assert [message.created_at for message in list_messages(builder)] == [
        moment(100),
        moment(300),
        moment(300),
        moment(300) + tick,
    ]
    thread = next(builder.build_items(updated_at=moment(150)))
    assert isinstance(thread, ImportedThread)
    assert (thread.created_at, thread.updated_at) == (moment(100), moment(300) + tick)


def test_add_tool_result__finds_call_by_id_or_newest_of_tool() -> None:
    builder = make_builder()
    builder.add_message(
        "a", "assistant", [*make_call("1", "f.x"), *make_call("2", "g"), *make_call("3", "f.y")]
    )
    assert builder.add_tool_result("by id", call_id="1")
    assert builder.add_tool_result("by tool", tool="f")
    assert builder.add_tool_result("the last open one")
    assert not builder.add_tool_result("no call", call_id="9")
    assert not builder.add_tool_result("no call", tool="h")
    results = [
        part["toolInvocation"]["result"] for part in list_messages(builder)[0].content["parts"]
    ]
    assert results == ["by id", "the last open one", "by tool"]


def test_add_tool_result__several_results_become_a_list() -> None:
    builder = make_builder()
    builder.add_message("a", "assistant", make_call("1", "draw"))
    picture = {"type": "image", "image": "x"}
    builder.add_tool_result("one", tool="draw", extra_parts=[picture])
    builder.add_tool_result("two", tool="draw", failed=True)
    invocation, joined = list_messages(builder)[0].content["parts"]
    assert invocation["toolInvocation"]["result"] == ["one", "two"]
    assert invocation["toolInvocation"]["isError"] is True
    assert joined == picture
