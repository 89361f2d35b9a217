"""Delete old threads."""

import re
from argparse import ArgumentTypeError
from collections import Counter
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory import conf
from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput, MastraMemoryError
from mastra_memory.review import erasure
from mastra_memory.review.erasure import PruningRule

UNITS = {"d": 1, "w": 7, "y": 365}
MAX_AGE_DAYS = 100_000
"""Older times do not fit into Python's calendar."""


class Command(BaseCommand):
    """Prune threads in batches; the command can be interrupted and run again."""

    help = (
        "Delete threads without recent activity, with everything in them. Without --older-than, "
        "the setting RETENTION_DAYS applies. Working memory and observations of resources remain: "
        "mastra_erase deletes those."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--older-than",
            type=_parse_age,
            metavar="AGE",
            help="without activity for this long: 30d, 8w or 2y",
        )
        parser.add_argument("--resource", help="only threads of this resource")
        parser.add_argument(
            "--status",
            action="append",
            default=[],
            help="only threads whose review has this status, such as resolved; may be repeated",
        )
        parser.add_argument(
            "--metadata",
            type=_parse_metadata,
            default={},
            help='only threads whose metadata contains this JSON object: \'{"plan": "trial"}\'',
        )
        parser.add_argument("--max-threads", type=int, help="stop after this many threads")
        parser.add_argument(
            "--batch-size",
            type=int,
            default=erasure.THREADS_PER_BATCH,
            help="threads in one transaction; default: %(default)s",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="count the threads; delete nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Delete the threads, or print how many there are."""
        if min(options["batch_size"], options["max_threads"] or 1) < 1:
            raise CommandError("--batch-size and --max-threads must be at least 1.")
        rule = PruningRule(
            inactive_since=times.now() - _get_age(options["older_than"]),
            resource_id=options["resource"],
            statuses=options["status"],
            metadata=options["metadata"],
        )
        try:
            erasure.check_rule(rule)
        except MastraMemoryError as error:
            raise CommandError(str(error)) from error
        total = rule.select_threads().count()
        if options["dry_run"]:
            self.stdout.write(
                f"{total} threads without activity since {rule.inactive_since:%Y-%m-%d %H:%M}"
                " would be deleted."
            )
            return
        counts = Counter[str]()
        with tqdm(total=total, unit=" threads", desc="Pruning", disable=None) as bar:
            for batch in erasure.prune(
                rule, max_threads=options["max_threads"], batch_size=options["batch_size"]
            ):
                counts += batch
                bar.update(batch["Thread"])
        self.stdout.write(f"Deleted {counts['Thread']} threads, {counts['Message']} messages.")


def _get_age(older_than: timedelta | None) -> timedelta:
    if older_than is not None:
        return older_than
    days = conf.app_settings().RETENTION_DAYS
    if days is None:
        raise CommandError("Give --older-than, such as 30d, or set RETENTION_DAYS.")
    return timedelta(days=days)


def _parse_age(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,5})([dwy])", text)
    days = int(match[1]) * UNITS[match[2]] if match else 0
    if not 0 < days <= MAX_AGE_DAYS:
        raise ArgumentTypeError("must be a number of days, weeks or years, such as 30d, 8w or 2y")
    return timedelta(days=days)


def _parse_metadata(text: str) -> dict[str, Any]:
    try:
        value = json_text.loads(text)
    except InvalidInput:
        value = None
    if not isinstance(value, dict):
        raise ArgumentTypeError('must be a JSON object such as {"plan": "trial"}')
    return value
