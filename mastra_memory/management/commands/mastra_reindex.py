"""Write the search words of all messages again, after a change of `SEARCH_LANGUAGE`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory import conf
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import maintenance
from mastra_memory.models import Message

BATCH_SIZE = 2_000


class Command(BaseCommand):
    """Rewrite the search words in small transactions, so that messages can be saved meanwhile."""

    help = "Rewrite the search words of all messages in the language of SEARCH_LANGUAGE."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--batch",
            type=int,
            default=BATCH_SIZE,
            help="messages in a transaction (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Rewrite all messages in the order of their ids."""
        language = conf.app_settings().SEARCH_LANGUAGE
        if options["batch"] < 1:
            raise CommandError("--batch must be at least 1.")
        total = 0
        try:
            with tqdm(total=Message.objects.count(), unit="message", disable=None) as bar:
                for count in maintenance.rewrite_search_words(
                    language, batch_size=options["batch"]
                ):
                    total += count
                    bar.update(count)
        except InvalidInput as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Rewrote the search words of {total} messages in {language}.")
