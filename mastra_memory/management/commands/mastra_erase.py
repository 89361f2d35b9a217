"""Erase everything that is stored about a resource."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, MastraMemoryError
from mastra_memory.review import erasure
from mastra_memory.review.erasure import ErasureReport


class Command(BaseCommand):
    """Erase a resource; the command can be interrupted and run again."""

    help = (
        "Delete everything that is stored about a resource: threads, messages, vectors, working "
        "memory, observations, reviews, notes, history, exports, and entries in the log of "
        "Django's admin. Prints a signed report. If the command is interrupted, run it again; "
        "when nothing is left, the report says 0."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument("resource", nargs="?", help="the resource id, often a user's key")
        parser.add_argument(
            "--dry-run", action="store_true", help="count what would be deleted; delete nothing"
        )
        parser.add_argument(
            "--no-input", action="store_true", help="do not ask for the resource id again"
        )
        parser.add_argument("--report", help="also write the signed report to this file")
        parser.add_argument(
            "--verify", metavar="FILE", help="check the signature of a report, and do nothing else"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Erase the resource, count what would be erased, or check a report."""
        if options["verify"]:
            self._verify(options["verify"])
            return
        resource_id = options["resource"]
        if not resource_id:
            raise CommandError("Name the resource, or a report with --verify.")
        try:
            if options["dry_run"]:
                report = erasure.count_resource(resource_id)
            else:
                self._confirm(resource_id, options)
                report = self._erase(resource_id)
        except MastraMemoryError as error:
            raise CommandError(str(error)) from error
        self._print(report, options["report"])

    def _confirm(self, resource_id: str, options: dict[str, Any]) -> None:
        if options["no_input"]:
            return
        self.stdout.write(
            f"This deletes everything about the resource {resource_id}. It cannot be undone."
        )
        if input("Type the resource id to continue: ") != resource_id:
            raise CommandError("Nothing was deleted.")

    def _erase(self, resource_id: str) -> ErasureReport:
        with tqdm(unit=" threads", desc="Erasing", disable=None) as bar:
            return erasure.erase_resource(resource_id, after_batch=bar.update)

    def _print(self, report: ErasureReport, path: str | None) -> None:
        text = json.dumps(report.to_signed_dict(), indent=2, ensure_ascii=False)
        if path:
            Path(path).write_text(text + "\n")
        self.stdout.write(text)

    def _verify(self, path: str) -> None:
        try:
            report = json_text.loads(Path(path).read_bytes())
        except (OSError, InvalidInput) as error:
            raise CommandError(f"{path} cannot be read: {error}") from error
        if not isinstance(report, dict) or not erasure.is_signature_valid(report):
            raise CommandError(
                "The signature is wrong: the report was changed, or signed with another SECRET_KEY."
            )
        self.stdout.write("The signature is valid.")
