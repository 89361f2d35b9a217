"""Turns of one conversation: times only grow, results find their calls."""

from datetime import timedelta
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.importers.conversation import ConversationBuilder
from mastra_memory.importers.records import ImportedMessage, ImportedThread
from tests.support.factories import moment


def builder() -> ConversationBuilder:
    return ConversationBuilder("t1", "alice", moment(100), "here")


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def call(call_id: str, tool: str) -> list[dict[str, Any]]:
    return [normalization.build_call_part(call_id, tool, {})]


def messages(made: ConversationBuilder) -> list[ImportedMessage]:
    return [item for item in made.build_items() if isinstance(item, ImportedMessage)]


def test_items__the_thread_comes_first_and_ids_are_the_same_every_time() -> None:
    made, again = builder(), builder()
    for each in (made, again):
        each.add_message("a", "user", text("x"))
    assert isinstance(next(made.build_items()), ImportedThread)
    assert messages(made) == messages(again)
    assert len({message.id for message in messages(made)}) == 1


def test_add__times_only_grow() -> None:
    made = builder()
    made.add_message("a", "user", text("1"))
    made.add_message("b", "user", text("2"), time=moment(300))
    made.add_message("c", "user", text("3"), time=moment(200))
    made.add_message("d", "user", text("4"))
    tick = timedelta(milliseconds=1)
    assert [message.created_at for message in messages(made)] == [
        moment(100),
        moment(300),
        moment(300),
        moment(300) + tick,
    ]
    thread = next(made.build_items(updated_at=moment(150)))
    assert isinstance(thread, ImportedThread)
    assert (thread.created_at, thread.updated_at) == (moment(100), moment(300) + tick)


def test_answer__by_id_then_by_tool_then_the_newest_open_call() -> None:
    made = builder()
    made.add_message("a", "assistant", [*call("1", "f.x"), *call("2", "g"), *call("3", "f.y")])
    assert made.add_tool_result("by id", call_id="1")
    assert made.add_tool_result("by tool", tool="f")
    assert made.add_tool_result("the last open one")
    assert not made.add_tool_result("nobody's", call_id="9")
    assert not made.add_tool_result("nobody's", tool="h")
    found = [part["toolInvocation"]["result"] for part in messages(made)[0].content["parts"]]
    assert found == ["by id", "the last open one", "by tool"]


def test_answer__further_results_make_a_list_and_further_parts_join() -> None:
    made = builder()
    made.add_message("a", "assistant", call("1", "draw"))
    picture = {"type": "image", "image": "x"}
    made.add_tool_result("one", tool="draw", extra_parts=[picture])
    made.add_tool_result("two", tool="draw", failed=True)
    invocation, joined = messages(made)[0].content["parts"]
    assert invocation["toolInvocation"]["result"] == ["one", "two"]
    assert invocation["toolInvocation"]["isError"] is True
    assert joined == picture
