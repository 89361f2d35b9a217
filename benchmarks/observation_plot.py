"""Draw how the tokens of a context develop in a conversation of 2,000 messages.

The options are the defaults (30,000 tokens of messages, 40,000 of observations). A fake model
observes and reflects, so the script needs no key. It checks the budget at every turn, writes
docs/observational-memory.svg and ends with code 1 if the budget was exceeded.

    python -m benchmarks.observation_plot [FILE]
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import observation_svg, temporary
from benchmarks.observation_svg import Marks, Series
from benchmarks.observational_peer import fake_model
from tests.support import servers
from tests.support.servers import say

MESSAGES = 2_000
AGENT = "observed"
THREAD, RESOURCE = "plot-thread", "plot-resource"
START = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)
PAUSE = timedelta(hours=5)
TARGET = Path(__file__).resolve().parents[1] / "docs" / "observational-memory.svg"
WORDS = (
    "we moved the invoices of the customer to the new region and counted what was left there "
    "because the old index answered slowly while the import of the archive kept running at night"
).split()


@dataclass(frozen=True, slots=True)
class Point:
    """The context of one turn, in tokens."""

    messages: int
    """How many messages are stored."""
    history: int
    observations: int
    total: int
    generation: int
    activations: int
    stored: int
    """Tokens of all messages so far: the context without observational memory."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The largest allowed tokens: the thresholds of the options."""

    history: int
    observations: int

    @property
    def total(self) -> int:
        """Messages and observations together."""
        return self.history + self.observations


def main() -> int:
    """Play the conversation on a temporary database. Return 1 if the budget was exceeded."""
    servers.stop_on_terminate()
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    with tempfile.TemporaryDirectory(prefix="observation-plot-") as folder:
        var_dir = Path(folder, "var")
        os.environ.update(servers.environment("benchmarks.observation_settings", var_dir))
        temporary.create_tables()
        try:
            budget, points = play(MESSAGES)
        finally:
            temporary.stop_database(var_dir)
    target.write_text(draw(budget, points), encoding="utf-8")
    say(describe(budget, points))
    exceeded = list_exceeded(budget, points)
    for point in exceeded[:5]:
        say(f"Over budget after {point.messages} messages: {point}")
    return int(bool(exceeded))


def play(count: int) -> tuple[Budget, list[Point]]:
    """Save the messages one after the other, and read the context before each answer."""
    from mastra_memory.llm.text_models import override_model
    from mastra_memory.memory import Memory

    memory = Memory(AGENT)
    memory.create_thread(RESOURCE, thread_id=THREAD, title="A long conversation")
    points: list[Point] = []
    stored = 0
    with override_model(_answer):
        for number in range(count):
            message = make_message(number)
            (saved,) = memory.save_messages([message]).messages
            stored += _count_tokens(saved)
            if message["role"] == "user":
                points.append(_measure(memory, number + 1, stored))
    settings = memory.get_observational_status(thread_id=THREAD).settings
    return Budget(settings.message_tokens, settings.observation_tokens), points


def _answer(request: Any) -> Any:
    """Answer as the fake model does, with about a quarter of the tokens."""
    from mastra_memory.llm.text_models import TextReply

    _, text = fake_model.answer(request.instructions, request.prompt, attempt=1)
    return TextReply(text=text)


def make_message(number: int) -> dict[str, Any]:
    """Return a message. Most are short; every seventh is long."""
    length = 420 if number % 7 == 3 else 40 + number * 37 % 160
    words = (WORDS[(number * 5 + index * 3) % len(WORDS)] for index in range(length))
    return {
        "id": f"plot-{number:05d}",
        "role": "assistant" if number % 2 else "user",
        "threadId": THREAD,
        "resourceId": RESOURCE,
        "createdAt": (START + number // 2 * PAUSE + number % 2 * PAUSE / 100).isoformat(),
        "content": f"Case {number}: {' '.join(words)}.",
    }


def _count_tokens(message: Any) -> int:
    from mastra_memory.content import tokens

    return tokens.get_token_counter().message(message.role, message.content)


def _measure(memory: Any, messages: int, stored: int) -> Point:
    context = memory.context(THREAD)
    record = context.record
    sizes = {block.kind: block.tokens for block in context.blocks}
    return Point(
        messages=messages,
        history=sizes.get("history", 0),
        observations=sizes.get("observations", 0),
        total=context.tokens,
        generation=record.generation_count if record else 0,
        activations=_count_activations(),
        stored=stored,
    )


def _count_activations() -> int:
    from mastra_memory.models import ObservationEvent

    return ObservationEvent.objects.filter(
        operation=ObservationEvent.Operation.ACTIVATION, data__operationType="observation"
    ).count()


def list_exceeded(budget: Budget, points: Sequence[Point]) -> list[Point]:
    """Return the turns whose context is above the budget."""
    return [
        point
        for point in points
        if point.history > budget.history
        or point.observations > budget.observations
        or point.total > budget.total
    ]


def describe(budget: Budget, points: Sequence[Point]) -> str:
    """Return the figures of the run as a table."""
    last = points[-1]
    rows = [
        ("messages", f"{last.messages + 1:,}"),
        ("tokens of all messages", f"{last.stored:,}"),
        ("activations", f"{last.activations}"),
        ("generations of the log", f"{last.generation + 1}"),
        (
            "largest history in a context",
            f"{max(p.history for p in points):,} of {budget.history:,}",
        ),
        (
            "largest observations in a context",
            f"{max(p.observations for p in points):,} of {budget.observations:,}",
        ),
        ("largest context", f"{max(p.total for p in points):,} of {budget.total:,}"),
        ("last context", f"{last.total:,}"),
    ]
    return "\n".join(f"{name:36} {value}" for name, value in rows)


def draw(budget: Budget, points: Sequence[Point]) -> str:
    """Return the plot as SVG."""
    pairs = list(pairwise(points))
    return observation_svg.draw(
        title="Tokens of a context during a conversation of 2,000 messages",
        series=[
            Series("whole context", [(p.messages, p.total) for p in points], "total"),
            Series("unobserved messages", [(p.messages, p.history) for p in points], "history"),
            Series("observations", [(p.messages, p.observations) for p in points], "log"),
            Series("all messages", [(p.messages, p.stored) for p in points], "stored"),
        ],
        marks=[
            Marks(
                "activation",
                [b.messages for a, b in pairs if b.activations > a.activations],
                "activation",
            ),
            Marks(
                "reflection",
                [b.messages for a, b in pairs if b.generation > a.generation],
                "reflection",
            ),
        ],
        limit=(f"budget: {budget.total:,} tokens", budget.total),
        x_label="messages",
        y_label="tokens",
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except servers.ServerError as error:
        sys.exit(str(error))
