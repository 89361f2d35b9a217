"""Tables of the comparison, with the reason for each difference."""

from collections.abc import Sequence
from typing import Any

from benchmarks.observational_peer.steps import FIELDS, Step

Pairs = Sequence[tuple[Step, Step]]

_CHUNKS = (
    "after two chunks Mastra's trigger stays on and its chunks are half as large; a reflection "
    "drops its chunks, and their messages are observed again"
)
_HINTS = "Mastra asks for no hints when it buffers; here a chunk may bring them"
_CURSOR = (
    "when Mastra reflects in the turn in which it observes, the new generation has the cursor from "
    "before, and the same messages are observed again"
)
_THREADS = (
    "Mastra gives the messages of all threads to the calling thread: in the list of messages, in "
    "the section of the log and in the hints"
)
_COUNTED_TWICE = "Mastra counts the messages of other threads twice"
_ALWAYS = {
    "stored_pending_tokens": "Mastra stores it at another moment of the turn",
    "observed_ids": "here each message has a row, instead of a list that grows",
    "total_tokens_observed": "Mastra adds the size of the whole log; here, of the messages",
}
EXPLANATIONS: dict[str, dict[str, str]] = {
    "buffering": _ALWAYS
    | dict.fromkeys(
        "seen_messages seen_log calls generation log log_tokens pending_tokens unbuffered_tokens "
        "chunk_messages chunk_tokens chunk_cursors chunk_texts reflection_in_advance "
        "buffered_at_time".split(),
        _CHUNKS,
    )
    | dict.fromkeys(("seen_hints", "stored_hints"), _HINTS)
    | {
        "cursor": "the newest message of a chunk + 1 ms at Mastra's, that message here",
        "thread_cursor": "here activation sets it too",
        "buffered_at_tokens": "the size of the last chunk at Mastra's, the position here",
    },
    "at-once": _ALWAYS
    | dict.fromkeys(
        "seen_messages seen_log seen_hints calls generation log log_tokens cursor pending_tokens "
        "unbuffered_tokens stored_hints thread_cursor".split(),
        _CURSOR,
    ),
    "retrieval": _ALWAYS,
    "resource": _ALWAYS
    | dict.fromkeys(
        "seen_messages seen_log seen_hints seen_other_threads calls generation origin log "
        "log_tokens cursor stored_hints thread_cursor".split(),
        _THREADS,
    )
    | dict.fromkeys(("pending_tokens", "unbuffered_tokens"), _COUNTED_TWICE),
}
"""Why a value may differ, by scenario. A difference in any other value has no explanation."""


def make_step_table(pairs: Pairs) -> str:
    """Return a line for each turn, with the most important numbers as `ours / Mastra's`."""
    lines = [
        "| turn | messages seen | pending | chunks | log | generation | calls |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, (ours, mastra) in enumerate(pairs, 1):
        cells = [
            _pair(len(ours.seen_messages), len(mastra.seen_messages)),
            _pair(ours.pending_tokens, mastra.pending_tokens),
            _pair(_sizes(ours), _sizes(mastra)),
            _pair(ours.log_tokens, mastra.log_tokens),
            _pair(ours.generation, mastra.generation),
            _pair(_calls(ours), _calls(mastra)),
        ]
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _pair(ours: Any, mastra: Any) -> str:
    return f"{ours}" if ours == mastra else f"{ours} / {mastra}"


def _sizes(step: Step) -> str:
    return "+".join(str(size) for size, _ in step.chunk_tokens) or "-"


def _calls(step: Step) -> str:
    return " ".join(f"{kind[:3]}({len(lines)})" for kind, lines in step.calls) or "-"


def make_difference_table(name: str, pairs: Pairs) -> tuple[str, int]:
    """Return a line for each compared value, and how many differences have no explanation.

    Args:
        name: The name of the scenario.
        pairs: Its steps.
    """
    lines = [
        "| value | equal | first difference | ours | Mastra | why |",
        "|---|---|---|---|---|---|",
    ]
    explanations = EXPLANATIONS[name]
    missing = 0
    for field in FIELDS:
        values = [(getattr(ours, field), getattr(mastra, field)) for ours, mastra in pairs]
        different = [number for number, (ours, mastra) in enumerate(values, 1) if ours != mastra]
        equal = f"{len(pairs) - len(different)} of {len(pairs)}"
        if not different:
            lines.append(f"| {field} | {equal} | | | | |")
            continue
        reason = explanations.get(field, "")
        missing += not reason
        ours, mastra = (_shorten(value) for value in values[different[0] - 1])
        lines.append(
            f"| {field} | {equal} | {different[0]} | {ours} | {mastra} |"
            f" {reason or 'UNEXPLAINED'} |"
        )
    return "\n".join(lines), missing


def _shorten(value: Any, length: int = 90) -> str:
    text = str(value).replace("\n", "⏎").replace("|", "¦")
    return text if len(text) <= length else f"{text[:length]}…"


def compare_shared_chunks(pairs: Pairs) -> tuple[int, list[tuple[str, ...]]]:
    """Compare the chunks of the same messages, whenever each side made them.

    Returns:
        How many chunks both sides made of the same messages, and the messages of those whose
        tokens, cursor or text differ.
    """
    ours, mastra = (_collect_chunks([pair[side] for pair in pairs]) for side in (0, 1))
    shared = [ids for ids in ours if ids in mastra]
    return len(shared), [ids for ids in shared if ours[ids] != mastra[ids]]


def _collect_chunks(steps: Sequence[Step]) -> dict[tuple[str, ...], Any]:
    return {
        tuple(ids): (sizes, cursor, text)
        for step in steps
        for ids, sizes, cursor, text in zip(
            step.chunk_messages,
            step.chunk_tokens,
            step.chunk_cursors,
            step.chunk_texts,
            strict=True,
        )
    }


def count_equal_steps(pairs: Pairs, names: Sequence[str]) -> int:
    """Return how many steps pass before one of these values differs for the first time."""
    for number, (ours, mastra) in enumerate(pairs):
        if any(getattr(ours, name) != getattr(mastra, name) for name in names):
            return number
    return len(pairs)
