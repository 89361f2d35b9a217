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
    """Streams; the file gets its name when it is whole."""

    help = (
        "Export conversations: jsonl (lossless, mastra_import reads it back), openai (chat JSONL), "
        "markdown or csv."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Say what to export and where to."""
        parser.add_argument("--format", choices=list(FORMATS), default=jsonl.NAME)
        parser.add_argument(
            "--resource", action="append", default=[], help="only its threads; may be repeated"
        )
        parser.add_argument(
            "--thread", action="append", default=[], help="only this thread; may be repeated"
        )
        parser.add_argument("--since", type=_moment, help="only messages from this date or time on")
        parser.add_argument("--until", type=_moment, help="only messages before it")
        parser.add_argument(
            "--output", default=output.STDOUT, help="a file (.gz packs it); - for standard output"
        )
        parser.add_argument("--force", action="store_true", help="overwrite the file")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export and count."""
        chosen = ExportSelection(
            resource_ids=options["resource"],
            thread_ids=options["thread"],
            since=options["since"],
            until=options["until"],
        )
        try:
            if missing := selection.list_missing_threads(chosen):
                raise CommandError(f"There is no thread {missing[0]}.")
            with (
                output.open_output(options["output"], force=options["force"]) as write,
                selection.consistent_snapshot(),
                _progress(chosen) as after_thread,
            ):
                counts = FORMATS[options["format"]].export(chosen, write, after_thread)
        except InvalidInput as error:
            raise CommandError(str(error)) from None
        except BrokenPipeError:
            # Whoever read has had enough; without this Python complains again at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        self.stderr.write(f"Exported {counts.threads:,} threads, {counts.messages:,} messages.")


def _moment(value: str) -> datetime:
    try:
        return times.parse_time(value)
    except ValueError:
        raise ArgumentTypeError(f"{value} is no date or time such as 2024-05-08T13:56") from None


@contextmanager
def _progress(chosen: ExportSelection) -> Iterator[Callable[[], None]]:
    """A bar on a terminal only. Gives what moves it by a thread."""
    with tqdm(disable=None, unit=" threads", file=sys.stderr) as bar:
        if not bar.disable:
            bar.reset(selection.count_threads(chosen))

        def move() -> None:
            bar.update()

        yield move
