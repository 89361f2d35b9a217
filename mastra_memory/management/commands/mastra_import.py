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

from mastra_memory.db.identifiers import check_id
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import sources
from mastra_memory.importers.loader import BATCH_ROWS, Loader, count_workers
from mastra_memory.importers.records import ResourceMapping
from mastra_memory.importers.report import ImportReport
from mastra_memory.importers.sources import ImportSource
from mastra_memory.importers.user_ids import UserIdWarning

EXIT_INTERRUPTED = 130
"""The exit code of a process that Ctrl-C ended: 128 plus the number of the signal."""


class Command(BaseCommand):
    """Import conversations in batches.

    The command can be interrupted and repeated: nothing is stored twice.
    """

    help = (
        "Import conversations from a Mastra database (PostgreSQL or LibSQL), exports of ChatGPT, "
        "Claude, Open WebUI, LibreChat, Langfuse or LangSmith, messages of OpenAI's or Anthropic's "
        "APIs, public data sets, an export of mastra_export, or files of your own with --mapping. "
        "Files may be in a folder or a ZIP archive, and compressed with gzip."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        parser.add_argument("source", help="a path or a postgresql:// URL")
        formats = (sources.AUTO, *sources.FORMAT_NAMES)
        parser.add_argument(
            "--format", choices=formats, default=sources.AUTO, help="default: %(default)s"
        )
        parser.add_argument(
            "--mapping",
            metavar="FILE",
            help="YAML or JSON that says where a CSV, JSON or JSON Lines file of your own contains "
            "the role, the text and the thread of each message",
        )
        resource = parser.add_mutually_exclusive_group()
        resource.add_argument("--resource", help="import all threads into this resource")
        resource.add_argument(
            "--resource-prefix",
            help="import the threads of each owner into a resource of its own: this prefix, "
            "followed by the id of the owner in the source",
        )
        parser.add_argument(
            "--schema",
            default="public",
            help="PostgreSQL schema of Mastra's tables (default: %(default)s)",
        )
        parser.add_argument(
            "--report", help="file that gets a line of JSON for each omitted record"
        )
        parser.add_argument(
            "--batch",
            type=int,
            default=BATCH_ROWS,
            help="rows in a transaction (default: %(default)s)",
        )
        parser.add_argument(
            "--update",
            action="store_true",
            help="overwrite stored objects that differ in the source",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="read and check everything, but store nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import the source and print a report."""
        if options["batch"] < 1:
            raise CommandError("--batch must be at least 1.")
        with ExitStack() as stack:
            try:
                source = stack.enter_context(
                    sources.open_source(
                        options["source"],
                        format=options["format"],
                        schema=options["schema"],
                        mapping=options["mapping"],
                    )
                )
                resources = _build_resource_mapping(
                    source, options["resource"], options["resource_prefix"]
                )
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
            workers=count_workers(),
            update=options["update"],
            dry_run=options["dry_run"],
            before_store=UserIdWarning(self._warn).check_rows if source.keeps_ids else None,
        )
        started = time.monotonic()
        with _stop_on_interrupt(loader), _progress_bar(source, report) as after_batch:
            finished = loader.load(source.read(resources), after_batch)
        self._print_report(report, options, time.monotonic() - started)
        if not finished:
            self.stderr.write("Interrupted. Run the same command again to import the rest.")
            raise SystemExit(EXIT_INTERRUPTED)
        if not report.parsed_count:
            raise CommandError("No record of the source could be read.")

    def _warn(self, resource_id: str) -> None:
        self.stderr.write(
            f"Warning: the resource {resource_id} has the id of a user of this site, who will see "
            "its threads. To avoid that, delete the imported threads and use --resource-prefix."
        )

    def _print_report(
        self, report: ImportReport, options: Mapping[str, Any], seconds: float
    ) -> None:
        for line in report.format_lines():
            self.stdout.write(line)
        messages = report.count_read("messages") + report.count_read("branch copies")
        rate = messages / max(seconds, 0.001)
        self.stdout.write(f"{messages:,} messages in {seconds:,.1f} s: {rate:,.0f} per second.")
        if options["dry_run"]:
            self.stdout.write("Dry run: nothing was stored.")
        if report.omitted_count:
            path = options["report"]
            hint = f"See {path}." if path else "Use --report to list them in a file."
            self.stdout.write(f"{report.omitted_count:,} records were omitted. {hint}")


def _build_resource_mapping(
    source: ImportSource, resource: str | None, prefix: str | None
) -> ResourceMapping:
    """Return which resources the threads belong to.

    Raises:
        InvalidInput: The format has no resource ids, and neither option is set.
    """
    if resource is not None:
        return ResourceMapping(check_id(resource, "--resource"))
    if not prefix and not source.keeps_ids:
        raise InvalidInput(
            f"The format {source.format} has no resource ids. Use --resource to import into one "
            "resource, or --resource-prefix to create a resource for each owner in the source."
        )
    return ResourceMapping(prefix=prefix or "")


@contextmanager
def _stop_on_interrupt(loader: Loader) -> Iterator[None]:
    """Let the first Ctrl-C finish the current batches; a second one ends the command at once."""
    # Only the main thread can set signal handlers.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, previous)
        loader.stop()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


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
def _progress_bar(source: ImportSource, report: ImportReport) -> Iterator[Callable[[], None]]:
    """Show a progress bar on a terminal; yield a function that updates it."""
    with tqdm(
        total=source.size, unit=source.unit, unit_scale=True, disable=None, file=sys.stderr
    ) as bar:

        def update() -> None:
            messages = report.count_read("messages")
            position = messages if source.position is None else source.position()
            bar.update(position - bar.n)
            rate = messages / max(bar.format_dict["elapsed"], 0.001)
            bar.set_postfix_str(f"{messages:,} messages, {rate:,.0f}/s")

        yield update
