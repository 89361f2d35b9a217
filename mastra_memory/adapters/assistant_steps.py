"""Split a message of the assistant into steps: a model response and its tool results."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mastra_memory.adapters.library_metadata import Json, get_part_metadata
from mastra_memory.content import tool_calls
from mastra_memory.types import StoredMessage

OUTCOME_KEYS = ("result", "isError", "errorText", "approval")
"""The keys of a tool call that belong to its outcome."""


def deduplicate_tool_calls(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return the messages with each tool call once.

    Mastra repeats a call in the message with its result.
    """
    return tool_calls.merge_stored_tool_results(list(messages), roles={"assistant"})


@dataclass(slots=True)
class Step:
    """One response of a model and the results of its tool calls."""

    parts: list[Json] = field(default_factory=list)
    """The parts of the answer, with its tool calls."""
    results: list[Json] = field(default_factory=list)
    """The tool calls in `parts` that have an outcome."""


def is_tool_call(part: Mapping[str, Any]) -> bool:
    """Return True if a part is a tool call."""
    return part.get("type") == "tool-invocation" and isinstance(part.get("toolInvocation"), dict)


def has_outcome(part: Mapping[str, Any]) -> bool:
    """Return True if a part is a tool call with a result, an error or a refusal."""
    if not is_tool_call(part):
        return False
    return tool_calls.get_state_rank(part["toolInvocation"]) >= tool_calls.FINISHED_RANK


def split_steps(content: Mapping[str, Any], *, library: str, single_step: bool) -> Iterator[Step]:
    """Yield the steps of a message in order.

    Mastra stores a whole turn in one message. A new step begins at a `step-start` part, and at any
    part other than a tool call after a result.

    Args:
        content: The content of an assistant's message.
        library: The library whose metadata has the order in which results arrived.
        single_step: Yield the message as one step, because the library wrote it so.
    """
    step = Step()
    for part in content["parts"]:
        begins_step = part.get("type") == "step-start" or (step.results and not is_tool_call(part))
        if begins_step and not single_step and step.parts:
            yield _sort_results(step, library)
            step = Step()
        if part.get("type") == "step-start":
            continue
        step.parts.append(part)
        if has_outcome(part):
            step.results.append(part)
    if step.parts:
        yield _sort_results(step, library)


def _sort_results(step: Step, library: str) -> Step:
    """Restore the order in which the library received the results of parallel calls."""

    def get_order(part: Json) -> int:
        order: int = get_part_metadata(library, part).get("return", {}).get("order", 0)
        return order

    step.results.sort(key=get_order)
    return step


def get_outcome(invocation: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return the result of a tool call, and whether the call failed.

    If there is no result, the reason of the failure or refusal is returned instead. The result of
    a successful call may be None.
    """
    state = invocation.get("state")
    failed = invocation.get("isError") is True or state == "output-error"
    result = invocation.get("result")
    if result is None and not (state == "result" and "result" in invocation and not failed):
        approval = invocation.get("approval")
        reason = approval.get("reason") if isinstance(approval, Mapping) else None
        result = invocation.get("errorText") or reason or ""
    return result, failed
