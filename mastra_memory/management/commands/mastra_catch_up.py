"""Do pending work whose background tasks were lost."""

from typing import Any

from django.core.management.base import BaseCommand

from mastra_memory.memory import maintenance


class Command(BaseCommand):
    """Find missing work in the database and do it in this process.

    The command can run at any time, more than once, and next to Celery workers.
    """

    help = (
        "Create missing embeddings, search words, titles, observations and exports, and remove "
        "expired exports. Needs no Celery worker."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do each kind of work and print how much was done.

        Work that failed recently is not repeated before its next attempt is due.
        """
        for message, work in (
            ("Embedded {} messages", maintenance.embed_pending),
            ("Wrote the search words of {} messages", maintenance.write_pending_words),
            ("Processed the titles of {} threads", maintenance.generate_pending_titles),
            ("Processed the observations of {} records", maintenance.run_due_observations),
            ("Wrote {} exports", maintenance.write_pending_exports),
            ("Removed {} expired exports", maintenance.remove_expired_exports),
        ):
            count = work()
            if options["verbosity"]:
                self.stdout.write(message.format(count))
