"""Limit how many calls of models a block of code makes, and what they cost."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal

from mastra_memory.exceptions import UsageLimitReached


@dataclass(slots=True, kw_only=True)
class UsageMeter:
    """The calls of models since a block began, and the limits of the block."""

    max_calls: int | None = None
    max_cost: Decimal | None = None
    """US dollars. Calls without a known price count as free."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal = Decimal(0)
    unpriced_calls: int = 0
    """Calls whose price is unknown."""

    def check(self) -> None:
        """Raise an exception if another call is not allowed.

        Raises:
            UsageLimitReached: A limit is reached.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise UsageLimitReached(f"The limit of {self.max_calls} calls is reached")
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise UsageLimitReached(f"The limit of {self.max_cost} US dollars is reached")

    def add(self, *, input_tokens: int, output_tokens: int, cost: Decimal | None) -> None:
        """Count one call."""
        self.calls += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.cost += cost or Decimal(0)
        self.unpriced_calls += cost is None


_meter: ContextVar[UsageMeter | None] = ContextVar("mastra_memory_usage_meter", default=None)


def get_meter() -> UsageMeter | None:
    """Return the meter of the innermost `limit_usage` block, or None."""
    return _meter.get()


@contextmanager
def limit_usage(
    *, max_calls: int | None = None, max_cost: Decimal | None = None
) -> Iterator[UsageMeter]:
    """Count the calls of models in the block, and refuse those beyond the limits.

    The call that reaches `max_cost` is finished, because its cost is known only afterwards.

    Args:
        max_calls: The largest number of calls; None for any number.
        max_cost: The cost in US dollars from which no further call is made; None for any cost.
    """
    meter = UsageMeter(max_calls=max_calls, max_cost=max_cost)
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)
