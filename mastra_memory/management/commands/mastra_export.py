"""Export conversations to a file."""

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory.db import times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.exporters import jsonl, markdown, openai_chat, output, selection, spreadsheet
from mastra_memory.exporters.selection import ExportSelection

FORMATS = {format.NAME: format for format in (jsonl, openai_chat, markdown, spreadsheet)}


class Command(BaseCommand):
    """Export conversations in one of several formats.

    The file is written under a temporary name and renamed when it is complete.
    """

    help = (
        "Export conversations as jsonl (complete; mastra_import reads it), openai (chat messages "
        "as JSON Lines), markdown or csv."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--format", choices=list(FORMATS), default=jsonl.NAME, help="default: %(default)s"
        )
        parser.add_argument(
            "--resource",
            action="append",
            default=[],
            help="export its threads only; may be repeated",
        )
        parser.add_argument(
            "--thread", action="append", default=[], help="export this thread only; may be repeated"
        )
        parser.add_argument(
            "--since", type=_parse_time, help="export messages from this date or time on"
        )
        parser.add_argument(
            "--until", type=_parse_time, help="export messages before this date or time"
        )
        parser.add_argument(
            "--output",
            default=output.STDOUT,
            help="a file, compressed if its name ends in .gz; - (default) for standard output",
        )
        parser.add_argument("--force", action="store_true", help="overwrite an existing file")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export the selected conversations and print how many there were."""
        selected = ExportSelection(
            resource_ids=options["resource"],
            thread_ids=options["thread"],
            since=options["since"],
            until=options["until"],
        )
        try:
            if missing := selection.list_missing_threads(selected):
                raise CommandError(f"There is no thread {missing[0]}.")
            with (
                output.open_output(options["output"], force=options["force"]) as write,
                selection.consistent_snapshot(),
                _progress_bar(selected) as after_thread,
            ):
                counts = FORMATS[options["format"]].export(selected, write, after_thread)
        except InvalidInput as error:
            raise CommandError(str(error)) from None
        except BrokenPipeError:
            # The reader, such as `head`, has closed the pipe. Python would report the error again
            # when it flushes standard output at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        self.stderr.write(f"Exported {counts.threads:,} threads, {counts.messages:,} messages.")


def _parse_time(value: str) -> datetime:
    try:
        return times.parse_time(value)
    except ValueError:
        raise ArgumentTypeError(f"{value} is not a date or time such as 2024-05-08T13:56") from None


@contextmanager
def _progress_bar(selected: ExportSelection) -> Iterator[Callable[[], None]]:
    """Show a progress bar on a terminal; yield a function that advances it by one thread."""
    with tqdm(disable=None, unit=" threads", file=sys.stderr) as bar:
        if not bar.disable:
            bar.reset(selection.count_threads(selected))

        def advance() -> None:
            bar.update()

        yield advance
