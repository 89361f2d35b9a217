"""Tables of the comparison, with the reason for each difference."""

from collections.abc import Sequence
from typing import Any

from benchmarks.observational_peer.steps import FIELDS, Step

Pairs = Sequence[tuple[Step, Step]]

_CHUNKS = (
    "Mastra takes the size of the last chunk for the position it has reached, so the next chunks "
    "are half as large; a reflection drops its chunks"
)
_CURSOR = "after a reflection Mastra may return to an older cursor and observe messages again"
_HINTS = (
    "Mastra asks for no hints when it buffers, and removes earlier ones at activation; ours asks "
    "for them and keeps them"
)
_FOLLOWS = f"follows from the chunks and the cursor: {_CURSOR}"
EXPLANATIONS = {
    "seen_messages": _FOLLOWS,
    "seen_log": _FOLLOWS,
    "seen_hints": _HINTS,
    "seen_other_threads": "Mastra shows other threads by the cursor of the record; ours by theirs",
    "calls": f"{_CHUNKS}; {_CURSOR}",
    "generation": _FOLLOWS,
    "origin": _FOLLOWS,
    "log": _FOLLOWS,
    "log_tokens": _FOLLOWS,
    "cursor": f"a chunk's newest message + 1 ms in Mastra, that message here; {_CURSOR}",
    "pending_tokens": f"{_FOLLOWS}. In resource scope Mastra counts other threads twice",
    "unbuffered_tokens": _CHUNKS,
    "stored_pending_tokens": "Mastra stores the count of an earlier moment of the turn",
    "chunk_messages": _CHUNKS,
    "chunk_tokens": _CHUNKS,
    "chunk_cursors": _CHUNKS,
    "chunk_texts": _CHUNKS,
    "reflection_in_advance": f"{_FOLLOWS}. Ours refuses a reflection that is not shorter",
    "buffered_at_tokens": "the size of the last chunk in Mastra, the position reached here",
    "buffered_at_time": _CHUNKS,
    "observed_ids": "ours has a row for each message instead of a list that grows",
    "total_tokens_observed": "Mastra adds the size of the log; ours the messages observed",
    "stored_hints": _HINTS,
    "thread_cursor": "ours also moves it at activation",
}
"""Why a value may differ. A difference in any other value has no explanation."""


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


def make_difference_table(pairs: Pairs) -> tuple[str, int]:
    """Return a line for each compared value, and how many differences have no explanation."""
    lines = [
        "| value | equal | first difference | ours | Mastra | why |",
        "|---|---|---|---|---|---|",
    ]
    missing = 0
    for name in FIELDS:
        values = [(getattr(ours, name), getattr(mastra, name)) for ours, mastra in pairs]
        different = [number for number, (ours, mastra) in enumerate(values, 1) if ours != mastra]
        equal = f"{len(pairs) - len(different)} of {len(pairs)}"
        if not different:
            lines.append(f"| {name} | {equal} | | | | |")
            continue
        reason = EXPLANATIONS.get(name, "")
        missing += not reason
        ours, mastra = (_shorten(value) for value in values[different[0] - 1])
        lines.append(
            f"| {name} | {equal} | {different[0]} | {ours} | {mastra} | {reason or 'UNEXPLAINED'} |"
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
