"""Write the searchable words of all messages anew, after a change of language."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory import conf
from mastra_memory.db import sql

BATCH = 2_000


class Command(BaseCommand):
    """Goes through the messages in small steps, so that saves go on meanwhile."""

    help = "Rewrite the searchable words of all messages in the language of SEARCH_LANGUAGE."

    def add_arguments(self, parser: CommandParser) -> None:
        """Say how many at a time."""
        parser.add_argument("--batch", type=int, default=BATCH, help="messages in a transaction")

    def handle(self, *args: Any, **options: Any) -> None:
        """Rewrite all, in the order of their ids."""
        language = conf.app_settings().SEARCH_LANGUAGE
        if sql.row("SELECT 1 FROM pg_ts_config WHERE cfgname = %s", [language]) is None:
            raise CommandError(f"PostgreSQL knows no text search configuration {language}.")
        if options["batch"] < 1:
            raise CommandError("--batch must be at least 1.")
        total = sql.row("SELECT count(*) FROM mastra_memory_message")
        done, last = 0, ""
        with tqdm(total=total[0] if total else 0, unit="message", disable=None) as bar:
            while found := self.rewrite(language, last, options["batch"]):
                last = found[-1]
                done += len(found)
                bar.update(len(found))
                sql.forget_statements()
        self.stdout.write(f"Rewrote the words of {done} messages in {language}.")

    def rewrite(self, language: str, after: str, batch: int) -> list[str]:
        """Rewrite one step; returns its ids in order."""
        found = sql.rows(
            """WITH step AS (
                SELECT id FROM mastra_memory_message WHERE id > %s ORDER BY id LIMIT %s),
            written AS (
                UPDATE mastra_memory_message m
                SET search = mastra_memory_words(%s::regconfig, m.text)
                FROM step WHERE m.id = step.id)
            SELECT id FROM step ORDER BY id""",
            [after, batch, language],
        )
        return [message_id for (message_id,) in found]
