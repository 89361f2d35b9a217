"""Observe the messages that wait for it, for the command `mastra_observe`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from mastra_memory import conf, llm
from mastra_memory.exceptions import (
    ClaimLost,
    FeatureDisabled,
    MastraMemoryError,
    UsageLimitReached,
)
from mastra_memory.llm import UsageMeter
from mastra_memory.memory.base import MemoryBase
from mastra_memory.observational import backlog, cycle, generations
from mastra_memory.observational.backlog import BacklogEntry, BacklogEstimate
from mastra_memory.observational.cycle import CycleResult
from mastra_memory.observational.work import Work

MAX_FAILURES = 1_000
"""How many failures are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedEstimate:
    """What observing a backlog would take, and its price."""

    records: int
    messages: int
    tokens: int
    calls: int
    input_tokens: int
    output_tokens: int
    model: str
    cost: Decimal | None
    """US dollars; None if the price of the model is unknown."""


@dataclass(slots=True)
class BacklogReport:
    """What a run has done so far."""

    usage: UsageMeter
    records: int = 0
    messages: int = 0
    busy: int = 0
    """Records that a worker was at work on."""
    failures: list[str] = field(default_factory=list)
    stopped_by: str = ""
    """The limit that ended the run; empty if it came to its end."""


class BacklogRun:
    """Observe the backlog of an agent, or estimate what that would take."""

    def __init__(
        self,
        memory: MemoryBase,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        everything: bool = False,
    ) -> None:
        """Choose the messages.

        Args:
            memory: The memory of the agent.
            thread_id: Only this thread.
            resource_id: Only this resource.
            everything: Also observe what is below the threshold.

        Raises:
            FeatureDisabled: Observational memory is off, or the agent is read-only.
        """
        options = memory.options.observational_memory
        if options is None:
            raise FeatureDisabled("Observational memory is not enabled for this agent")
        if memory.options.read_only:
            raise FeatureDisabled("The memory of this agent is read-only")
        self.memory = memory
        self.options = options
        self.thread_id = thread_id
        self.resource_id = resource_id
        self.everything = everything
        self.report = BacklogReport(UsageMeter())

    def estimate(self) -> PricedEstimate:
        """Return what it would take, without changing anything."""
        estimate = BacklogEstimate()
        for entry in self._list_entries():
            estimate.add(entry, self.options)
        model = self.options.observation.model
        name = model if isinstance(model, str) else model.limits[0][1]
        name = name or conf.app_settings().MODEL
        cost = llm.estimate_cost(
            name, input_tokens=estimate.input_tokens, output_tokens=estimate.output_tokens
        )
        return PricedEstimate(
            records=estimate.records,
            messages=estimate.messages,
            tokens=estimate.tokens,
            calls=estimate.calls,
            input_tokens=estimate.input_tokens,
            output_tokens=estimate.output_tokens,
            model=name,
            cost=cost,
        )

    def _list_entries(self) -> Iterator[BacklogEntry]:
        entries = backlog.list_backlog(
            self.options, thread_id=self.thread_id, resource_id=self.resource_id
        )
        for entry in entries:
            if self.everything or entry.tokens >= self.options.observation.message_tokens:
                yield entry

    def observe(
        self, *, max_calls: int | None = None, max_cost: Decimal | None = None
    ) -> Iterator[None]:
        """Observe the backlog, and yield after each thread or resource. See `report`.

        A failure of one of them does not stop the others.
        """
        with llm.limit_usage(max_calls=max_calls, max_cost=max_cost) as meter:
            self.report = report = BacklogReport(meter)
            for entry in self._list_entries():
                try:
                    self._observe_entry(entry)
                except UsageLimitReached as error:
                    report.stopped_by = str(error)
                    return
                except ClaimLost:
                    report.busy += 1  # Another worker took over meanwhile.
                except MastraMemoryError as error:
                    if len(report.failures) < MAX_FAILURES:
                        report.failures.append(f"{entry.key.subject_id}: {error}")
                yield

    def _observe_entry(self, entry: BacklogEntry) -> None:
        job = Work.build(entry.key, self.memory.options, agent_id=self.memory.agent_id)
        generations.get_or_create_live(entry.key, agent_id=self.memory.agent_id)
        result = CycleResult()
        try:
            cycle.run_cycle(job, everything=self.everything, result=result)
        finally:
            self.report.messages += result.messages_observed + result.messages_buffered
            self.report.records += result.has_changed
            self.report.busy += result.is_busy
