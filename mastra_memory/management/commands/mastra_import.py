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
from django.db import connection
from tqdm import tqdm

from mastra_memory.db.identifiers import check_id
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import sources
from mastra_memory.importers.loader import BATCH, LANES, Loader
from mastra_memory.importers.records import Owner
from mastra_memory.importers.report import Tally
from mastra_memory.importers.sources import Source
from mastra_memory.importers.user_ids import UserWatch

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
        formats = (sources.AUTO, *sources.NAMES)
        parser.add_argument("--format", choices=formats, default=sources.AUTO)
        owner = parser.add_mutually_exclusive_group()
        owner.add_argument("--resource", help="the resource that everything becomes")
        owner.add_argument(
            "--resource-prefix", help="put before the ids of the source: one resource for each"
        )
        parser.add_argument("--schema", default="public", help="of Mastra's tables in PostgreSQL")
        parser.add_argument("--report", help="file for one line on each record that is left out")
        parser.add_argument("--batch", type=int, default=BATCH, help="rows in a transaction")
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
                owner = _owner(source, options["resource"], options["resource_prefix"])
                tally = Tally(stack.enter_context(_report(options["report"])))
                self._import(source, owner, tally, options)
            except InvalidInput as error:
                raise CommandError(str(error)) from None

    def _import(
        self, source: Source, owner: Owner, tally: Tally, options: Mapping[str, Any]
    ) -> None:
        loader = Loader(
            tally,
            batch=options["batch"],
            lanes=1 if connection.in_atomic_block else LANES,
            update=options["update"],
            dry_run=options["dry_run"],
            look_at=UserWatch(self._warn).look_at if source.keeps_ids else None,
        )
        started = time.monotonic()
        with _stopping(loader), _progress(source, tally) as move:
            finished = loader.load(source.read(owner), move)
        self._conclude(tally, options, time.monotonic() - started)
        if not finished:
            self.stderr.write("Stopped. Run the same command again to import the rest.")
            raise SystemExit(INTERRUPTED)
        if not tally.understood:
            raise CommandError("Nothing could be read.")

    def _warn(self, resource_id: str) -> None:
        self.stderr.write(
            f"Warning: the resource {resource_id} is the id of a user here, who will see its "
            "threads. If that is not meant, use --resource-prefix, and erase it where it is stored."
        )

    def _conclude(self, tally: Tally, options: Mapping[str, Any], seconds: float) -> None:
        for line in tally.lines():
            self.stdout.write(line)
        messages = tally.read("messages") + tally.read("branch copies")
        rate = messages / max(seconds, 0.001)
        self.stdout.write(f"{messages:,} messages in {seconds:,.1f} s: {rate:,.0f} a second.")
        if options["dry_run"]:
            self.stdout.write("A dry run: nothing was stored.")
        if tally.left_out:
            place = options["report"]
            hint = f"See {place}." if place else "Name a file with --report to see each."
            self.stdout.write(f"{tally.left_out:,} records were left out. {hint}")


def _owner(source: Source, resource: str | None, prefix: str | None) -> Owner:
    """Whose it all becomes. Raises `InvalidInput` when a foreign source would decide that alone."""
    if resource is not None:
        return Owner(check_id(resource, "--resource"))
    if not prefix and not source.keeps_ids:
        raise InvalidInput(
            f"A source of the format {source.format} cannot say whose the threads become: use "
            "--resource, or --resource-prefix to make a resource of each owner that it names."
        )
    return Owner(prefix=prefix or "")


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
def _report(path: str | None) -> Iterator[IO[bytes] | None]:
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
def _progress(source: Source, tally: Tally) -> Iterator[Callable[[], None]]:
    """A bar with a rate, on a terminal only. Gives what moves it."""
    with tqdm(
        total=source.size, unit=source.unit, unit_scale=True, disable=None, file=sys.stderr
    ) as bar:

        def move() -> None:
            messages = tally.read("messages")
            position = messages if source.position is None else source.position()
            bar.update(position - bar.n)
            rate = messages / max(bar.format_dict["elapsed"], 0.001)
            bar.set_postfix_str(f"{messages:,} messages, {rate:,.0f}/s")

        yield move
