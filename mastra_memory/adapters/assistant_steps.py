"""An assistant's message as the steps it was made of: what the model said, what its calls gave."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mastra_memory.adapters.library_metadata import Json, get_part_metadata
from mastra_memory.content import tool_calls
from mastra_memory.db import json_text
from mastra_memory.types import StoredMessage


def deduplicate_tool_calls(messages: Iterable[StoredMessage]) -> Iterator[StoredMessage]:
    """The messages, each call once: Mastra's stores tell it again in the message of its result."""
    messages = list(messages)
    told = [_with_calls(message) for message in messages]
    for message, before, after in zip(
        messages, told, tool_calls.fold_tool_calls(told), strict=True
    ):
        if after is before:
            yield message
        elif after is not None:
            yield message._replace(content_json=json_text.dumps(after))


def _with_calls(message: StoredMessage) -> Json | None:
    """The content of an assistant's message that may hold calls."""
    may = message.role == "assistant" and tool_calls.may_contain_calls(message.content_json)
    return message.content if may else None


@dataclass(slots=True)
class Step:
    """One answer of a model and the outcomes of the calls in it."""

    said: list[Json] = field(default_factory=list)
    """The parts of the answer, calls among them."""
    ended: list[Json] = field(default_factory=list)
    """The parts of calls that have an outcome."""


def is_tool_call(part: Mapping[str, Any]) -> bool:
    """Whether a part is a tool call."""
    return part.get("type") == "tool-invocation" and isinstance(part.get("toolInvocation"), dict)


def has_outcome(part: Mapping[str, Any]) -> bool:
    """Whether a part is a tool call with an outcome."""
    return (
        is_tool_call(part)
        and tool_calls.get_state_rank(part["toolInvocation"]) >= tool_calls.FINISHED_RANK
    )


def split_steps(content: Mapping[str, Any], *, library: str, whole: bool) -> Iterator[Step]:
    """The steps in order; `whole` for a message that its library wrote as one.

    Where Mastra keeps a turn in one message, what follows an outcome is the next step. Outcomes
    come in the order in which the library saw them.
    """
    step = Step()
    for part in content["parts"]:
        anew = part.get("type") == "step-start" or (step.ended and not is_tool_call(part))
        if anew and not whole and step.said:
            yield _in_order(step, library)
            step = Step()
        if part.get("type") == "step-start":
            continue
        step.said.append(part)
        if has_outcome(part):
            step.ended.append(part)
    if step.said:
        yield _in_order(step, library)


def _in_order(step: Step, library: str) -> Step:
    step.ended.sort(
        key=lambda part: get_part_metadata(library, part).get("return", {}).get("order", 0)
    )
    return step


def get_outcome(invocation: Mapping[str, Any]) -> tuple[Any, bool]:
    """What a call gave, and whether it failed; of a failure or a refusal without a result, why."""
    failed = invocation.get("isError") is True or invocation.get("state") == "output-error"
    approval = invocation.get("approval")
    reason = approval.get("reason") if isinstance(approval, Mapping) else None
    given = invocation.get("result")
    if given is None:
        given = invocation.get("errorText") or reason or ""
    return given, failed


def get_reasoning_text(part: Mapping[str, Any]) -> str:
    """The text of a reasoning part, in either of Mastra's forms."""
    if isinstance(part.get("reasoning"), str):
        return part["reasoning"]
    details = part.get("details") or []
    return "\n".join(d["text"] for d in details if isinstance(d, Mapping) and d.get("text"))
