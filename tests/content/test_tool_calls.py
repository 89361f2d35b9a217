"""Tool calls across parts and messages."""

from typing import Any

import pytest

from mastra_memory.content import tool_calls
from mastra_memory.content.normalization import Content

ARGS = {"city": "Rome"}


def part(call_id: str = "c1", **state: Any) -> dict[str, Any]:
    invocation = {"toolCallId": call_id, "toolName": "weather", "args": ARGS, **state}
    return {"type": "tool-invocation", "toolInvocation": invocation}


def content(*parts: dict[str, Any]) -> Content:
    return {"format": 2, "parts": list(parts)}


SAID = {"type": "text", "text": "Hello"}
CALL = part(state="call")
RESULT = part(state="result", args={}, toolName="", result=21)


def test_joined__arguments_stay_and_the_outcome_is_added() -> None:
    whole = tool_calls.merge_call_states(CALL["toolInvocation"], RESULT["toolInvocation"])
    assert whole == {
        "toolCallId": "c1",
        "toolName": "weather",
        "args": ARGS,
        "state": "result",
        "result": 21,
    }


@pytest.mark.parametrize("state", ["partial-call", "call", "approval-requested"])
def test_joined__nothing_goes_back(state: str) -> None:
    ended = part(state="result", result=21)["toolInvocation"]
    late = part(state=state, args={"city": "Oslo"})["toolInvocation"]
    assert tool_calls.merge_call_states(ended, late)["state"] == "result"
    assert tool_calls.merge_call_states(ended, late)["result"] == 21


def test_folded__a_result_moves_to_its_call() -> None:
    first, second = tool_calls.merge_tool_results([content(SAID, CALL), content(RESULT)])
    assert second is None
    assert first == content(SAID, part(state="result", result=21))


def test_folded__a_message_keeps_what_else_it_says() -> None:
    _, second = tool_calls.merge_tool_results([content(CALL), content(RESULT, SAID)])
    assert second == content(SAID)


def test_folded__what_libraries_noted_is_kept_from_both() -> None:
    call = {**CALL, "providerMetadata": {"a": {"call": 1}, "b": {"x": 1}}}
    result = {**RESULT, "providerMetadata": {"a": {"return": 2}}}
    first, _ = tool_calls.merge_tool_results([content(call), content(result)])
    assert first is not None
    noted = first["parts"][0]["providerMetadata"]
    assert noted == {"a": {"call": 1, "return": 2}, "b": {"x": 1}}


def test_folded__an_id_that_is_used_again_is_another_call() -> None:
    told = [content(part(state="result", result=1)), content(part(state="result", result=2))]
    assert tool_calls.merge_tool_results(told) == told
    again = [content(CALL), content(RESULT), content(CALL), content(part(state="result", result=3))]
    first, second, third, fourth = tool_calls.merge_tool_results(again)
    assert (second, fourth) == (None, None)
    assert first == content(part(state="result", result=21))
    assert third == content(part(state="result", result=3))


def test_folded__a_result_without_a_call_stays() -> None:
    assert tool_calls.merge_tool_results([content(RESULT), None]) == [content(RESULT), None]


def test_without_open_calls__leaves_out_what_never_ended() -> None:
    assert tool_calls.remove_pending_calls(content(SAID, CALL)) == content(SAID)
    assert tool_calls.remove_pending_calls(content({"type": "step-start"}, CALL)) is None
    for state in ("result", "output-error", "output-denied"):
        ended = content(part(state=state))
        assert tool_calls.remove_pending_calls(ended) == ended
    assert tool_calls.remove_pending_calls(content(CALL), {"c1"}) == content(CALL)


def test_updated__a_message_sent_again_keeps_its_arguments() -> None:
    new = content(SAID, part(state="result", args={}, result=21))
    assert tool_calls.merge_stored_calls(content(CALL), new) == content(
        SAID, part(state="result", result=21)
    )


@pytest.mark.parametrize(
    "odd", [{}, {"parts": []}, content({"type": "tool-invocation"}), content(SAID)]
)
def test_invocations__odd_content_has_none(odd: Content) -> None:
    assert list(tool_calls.iter_tool_calls(odd)) == []
