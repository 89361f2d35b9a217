"""Import conversations from another system."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory.db import routing
from mastra_memory.db.identifiers import check_id
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import sources
from mastra_memory.importers.loader import BATCH_ROWS, DEFAULT_WORKERS, Loader
from mastra_memory.importers.records import ResourceMapping
from mastra_memory.importers.report import ImportReport
from mastra_memory.importers.sources import ImportSource
from mastra_memory.importers.user_ids import UserIdWarning

INTERRUPTED = 130
"""The exit code of a program that was stopped with Ctrl-C."""


class Command(BaseCommand):
    """Streams, stores batch by batch, and can be stopped and run again without a duplicate."""

    help = (
        "Import conversations: a Mastra database (address of PostgreSQL or LibSQL file), a ChatGPT "
        "or Claude export, OpenAI chat JSONL, ShareGPT or LoCoMo JSON, or our own export; as a "
        "file, a folder, .gz or .zip."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Say what to import and for whom."""
        parser.add_argument("source", help="path, or postgresql:// address")
        formats = (sources.AUTO, *sources.FORMAT_NAMES)
        parser.add_argument("--format", choices=formats, default=sources.AUTO)
        resources = parser.add_mutually_exclusive_group()
        resources.add_argument("--resource", help="the resource that everything becomes")
        resources.add_argument(
            "--resource-prefix", help="put before the ids of the source: one resource for each"
        )
        parser.add_argument("--schema", default="public", help="of Mastra's tables in PostgreSQL")
        parser.add_argument("--report", help="file for one line on each record that is left out")
        parser.add_argument("--batch", type=int, default=BATCH_ROWS, help="rows in a transaction")
        parser.add_argument(
            "--update",
            action="store_true",
            help="overwrite what is here already where it differs in the source",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="read and check everything, store nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import, then say what became of everything."""
        if options["batch"] < 1:
            raise CommandError("--batch must be at least 1.")
        with ExitStack() as stack:
            try:
                source = stack.enter_context(
                    sources.open_source(
                        options["source"], format=options["format"], schema=options["schema"]
                    )
                )
                resources = _owner(source, options["resource"], options["resource_prefix"])
                report = ImportReport(stack.enter_context(_open_report_file(options["report"])))
                self._import(source, resources, report, options)
            except InvalidInput as error:
                raise CommandError(str(error)) from None

    def _import(
        self,
        source: ImportSource,
        resources: ResourceMapping,
        report: ImportReport,
        options: Mapping[str, Any],
    ) -> None:
        loader = Loader(
            report,
            batch=options["batch"],
            workers=1 if routing.get_connection().in_atomic_block else DEFAULT_WORKERS,
            update=options["update"],
            dry_run=options["dry_run"],
            before_store=UserIdWarning(self._warn).check_rows if source.keeps_ids else None,
        )
        started = time.monotonic()
        with _stopping(loader), _progress(source, report) as move:
            finished = loader.load(source.read(resources), move)
        self._conclude(report, options, time.monotonic() - started)
        if not finished:
            self.stderr.write("Stopped. Run the same command again to import the rest.")
            raise SystemExit(INTERRUPTED)
        if not report.parsed_count:
            raise CommandError("Nothing could be read.")

    def _warn(self, resource_id: str) -> None:
        self.stderr.write(
            f"Warning: the resource {resource_id} is the id of a user here, who will see its "
            "threads. If that is not meant, use --resource-prefix, and erase it where it is stored."
        )

    def _conclude(self, report: ImportReport, options: Mapping[str, Any], seconds: float) -> None:
        for line in report.format_lines():
            self.stdout.write(line)
        messages = report.count_read("messages") + report.count_read("branch copies")
        rate = messages / max(seconds, 0.001)
        self.stdout.write(f"{messages:,} messages in {seconds:,.1f} s: {rate:,.0f} a second.")
        if options["dry_run"]:
            self.stdout.write("A dry run: nothing was stored.")
        if report.omitted_count:
            place = options["report"]
            hint = f"See {place}." if place else "Name a file with --report to see each."
            self.stdout.write(f"{report.omitted_count:,} records were left out. {hint}")


def _owner(source: ImportSource, resource: str | None, prefix: str | None) -> ResourceMapping:
    """Whose it all becomes. Raises `InvalidInput` when a foreign source would decide that alone."""
    if resource is not None:
        return ResourceMapping(check_id(resource, "--resource"))
    if not prefix and not source.keeps_ids:
        raise InvalidInput(
            f"A source of the format {source.format} cannot say whose the threads become: use "
            "--resource, or --resource-prefix to make a resource of each owner that it names."
        )
    return ResourceMapping(prefix=prefix or "")


@contextmanager
def _stopping(loader: Loader) -> Iterator[None]:
    """The first Ctrl-C lets the batches at hand end; the second one ends everything at once."""
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        loader.stop()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _open_report_file(path: str | None) -> Iterator[IO[bytes] | None]:
    if path is None:
        yield None
        return
    try:
        file = open(path, "wb")
    except OSError as error:
        raise InvalidInput(f"The report cannot be written: {error}") from None
    with file:
        yield file


@contextmanager
def _progress(source: ImportSource, report: ImportReport) -> Iterator[Callable[[], None]]:
    """A bar with a rate, on a terminal only. Gives what moves it."""
    with tqdm(
        total=source.size, unit=source.unit, unit_scale=True, disable=None, file=sys.stderr
    ) as bar:

        def move() -> None:
            messages = report.count_read("messages")
            position = messages if source.position is None else source.position()
            bar.update(position - bar.n)
            rate = messages / max(bar.format_dict["elapsed"], 0.001)
            bar.set_postfix_str(f"{messages:,} messages, {rate:,.0f}/s")

        yield move
