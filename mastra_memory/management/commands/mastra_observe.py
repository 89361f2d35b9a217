"""Observe messages that are waiting, in this process."""

from argparse import ArgumentTypeError
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory.exceptions import MastraMemoryError
from mastra_memory.memory import Memory
from mastra_memory.memory.observation_backlog import BacklogRun


class Command(BaseCommand):
    """Observe a backlog; the command can be interrupted, repeated, and run next to workers."""

    help = (
        "Observe the messages that wait for it, for example after an import, or after "
        "observational memory was turned on. Each call of the model is stored before the next "
        "one is made, so the command can be stopped at any time and run again. Conversations "
        "below the threshold of the agent are left alone, unless you give --all."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--agent", help="use the options of this agent; default: those of the setting OPTIONS"
        )
        parser.add_argument("--thread", help="only this conversation")
        parser.add_argument("--resource", help="only conversations of this resource")
        parser.add_argument(
            "--all", action="store_true", help="also observe what is below the threshold"
        )
        parser.add_argument(
            "--max-calls", type=_parse_count, help="stop after this many calls of models"
        )
        parser.add_argument(
            "--max-cost", type=_parse_cost, help="stop when this many US dollars are spent"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print what it would cost and change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Observe the backlog, or print what it would take."""
        try:
            run = BacklogRun(
                Memory(options["agent"]),
                thread_id=options["thread"],
                resource_id=options["resource"],
                everything=options["all"],
            )
            if options["dry_run"]:
                self._print_estimate(run)
            else:
                self._observe(run, options)
        except MastraMemoryError as error:
            raise CommandError(str(error)) from error

    def _print_estimate(self, run: BacklogRun) -> None:
        estimate = run.estimate()
        self.stdout.write(
            f"{estimate.messages} messages with about {estimate.tokens} tokens in"
            f" {estimate.records} conversations or resources are waiting."
        )
        cost = estimate.cost
        price = "an unknown price" if cost is None else f"about {cost:.4f} US dollars"
        self.stdout.write(
            f"About {estimate.calls} calls of {estimate.model}, which read"
            f" {estimate.input_tokens} tokens and write {estimate.output_tokens}: {price}."
        )

    def _observe(self, run: BacklogRun, options: dict[str, Any]) -> None:
        total = run.estimate()
        with tqdm(total=total.records, unit="record", desc="Observing", disable=None) as bar:
            steps = run.observe(max_calls=options["max_calls"], max_cost=options["max_cost"])
            for _ in steps:
                bar.update()
        report = run.report
        self.stdout.write(
            f"Observed {report.messages} messages of {report.records} conversations or resources"
            f" with {report.usage.calls} calls ({report.usage.input_tokens} tokens read,"
            f" {report.usage.output_tokens} written, {report.usage.cost:.4f} US dollars)."
        )
        if report.usage.unpriced_calls:
            self.stdout.write(
                f"The price of {report.usage.unpriced_calls} calls is unknown; see PRICES."
            )
        if report.busy:
            self.stdout.write(f"{report.busy} were left to workers that are at work on them.")
        for failure in report.failures[:10]:
            self.stderr.write(failure)
        if report.failures:
            self.stdout.write(f"{len(report.failures)} failed; run the command again.")
        if report.stopped_by:
            self.stdout.write(f"{report.stopped_by}. Run the command again for the rest.")


def _parse_count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError("must be a whole number of at least 1")
    return number


def _parse_cost(text: str) -> Decimal:
    try:
        cost = Decimal(text)
    except InvalidOperation:
        cost = Decimal(0)
    if not cost.is_finite() or cost <= 0:
        raise ArgumentTypeError("must be a number of US dollars above 0")
    return cost
