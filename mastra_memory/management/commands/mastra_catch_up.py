"""Do what rows say is still to be done, when tasks were lost or no worker runs."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand

from mastra_memory import conf
from mastra_memory.embedding import indexing, queue
from mastra_memory.review import exports
from mastra_memory.search import tsvector
from mastra_memory.tasks import EMBEDDING_SECONDS, WORDS_AT_A_TIME
from mastra_memory.threads import titles


class Command(BaseCommand):
    """Safe to run at any time, beside workers, and twice."""

    help = "Make the vectors, searchable words, titles and exports that are missing."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it here and now; what failed a moment ago waits for its next attempt."""
        for done in self.work():
            if options["verbosity"]:
                self.stdout.write(done)

    def work(self) -> Iterator[str]:
        """Do one kind of work after the other; tell each when it is done."""
        yield f"Embedded {self.embed()} messages"
        yield f"Wrote the words of {self.write_words()} messages"
        yield f"Worked on {self.give_titles()} titles"
        yield f"Made {self.make_exports()} exports"
        yield f"Removed {exports.remove_expired()} old exports"

    def embed(self) -> int:
        """Make vectors until nothing is due."""
        queue.fail_expired()
        for model in conf.embedding_models():
            queue.enqueue_copies(model)
        total, more = 0, True
        while more:
            done, more = indexing.embed_pending(seconds=EMBEDDING_SECONDS)
            total += done
        return total

    def write_words(self) -> int:
        """Write searchable words until none is missing."""
        total = 0
        while done := tsvector.index_pending_words(limit=WORDS_AT_A_TIME):
            total += done
        return total

    def give_titles(self) -> int:
        """Give a title to every thread that is due one."""
        due = titles.due_threads()
        for thread_id in due:
            titles.propose_title(thread_id)
        return len(due)

    def make_exports(self) -> int:
        """Make the exports that nobody has begun, and those that broke off."""
        return sum(exports.run(job_id) for job_id in exports.list_unfinished())
