"""Make, rebuild, report and drop the vectors that recall by meaning is made of."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.embedding import embedder, indexing, queue, stats
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.exceptions import MastraMemoryError

REBUILD = 4
"""An index that is to grow by more than one part in so many is built anew: adding a vector to it
costs about eight times what building it costs for each, as measured."""


class Command(BaseCommand):
    """Can be stopped and run again, and run beside workers: nothing is embedded twice."""

    help = (
        "Embed what is missing, then build the index where it pays. To change to another embedder "
        "without a gap: put it into EMBED_ALSO, run `mastra_embed --model NEW`, make it EMBEDDER, "
        "and run `mastra_embed --drop OLD`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Say what to do."""
        parser.add_argument("--model", help="an embedder other than the setting EMBEDDER")
        parser.add_argument(
            "--all",
            action="store_true",
            help="also messages that were saved while nobody wanted recall by meaning",
        )
        parser.add_argument("--again", action="store_true", help="make all vectors anew")
        parser.add_argument("--retry", action="store_true", help="try again what was given up")
        parser.add_argument("--report", action="store_true", help="say what there is, do nothing")
        parser.add_argument(
            "--index", action="store_true", help="build the index even for few vectors"
        )
        parser.add_argument("--no-index", action="store_true", help="build no index")
        parser.add_argument("--drop", metavar="MODEL", help="delete the vectors of this model")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, then report."""
        model = options["model"] or conf.app_settings().EMBEDDER
        try:
            if options["drop"]:
                self.drop(options["drop"])
            elif not options["report"]:
                self.embed(model, options)
        except MastraMemoryError as error:
            raise CommandError(str(error)) from error
        self.report()

    def embed(self, model: str, options: dict[str, Any]) -> None:
        """Ask for what is missing and make it, the index last."""
        embedder.get_embedder(model)  # a faulty name or a missing library is told before all else
        if options["retry"]:
            queue.retry_failed()
        queue.enqueue(model, everything=options["all"], again=options["again"])
        pending = sum(b.pending for b in stats.list_backlogs() if b.model == model)
        dropped = False if options["no_index"] else self.drop_indexes(model, pending)
        self.make(model, pending)
        if not options["no_index"]:
            self.build_indexes(model, always=options["index"] or dropped)

    def drop_indexes(self, model: str, pending: int) -> bool:
        """Drop the indexes that so many vectors more would take too long to go into."""
        growing = [
            VectorIndex.for_model(model, kind.dimensions)
            for kind in (stats.list_vector_counts() if pending else ())
            if kind.model == model and kind.index_ready and pending * REBUILD > kind.vectors
        ]
        for index in growing:
            self.stdout.write("The index is built anew; searches compare all vectors meanwhile.")
            index.drop()
        return bool(growing)

    def make(self, model: str, pending: int) -> None:
        """Make vectors until nothing can be taken any more."""
        with tqdm(total=pending, unit="message", desc=model, disable=None) as bar:
            while True:
                taken, stored = indexing.embed_batch(model)
                bar.update(stored)
                sql.forget_statements()
                if not taken:
                    return

    def build_indexes(self, model: str, *, always: bool) -> None:
        """Build the index for every length of the model's vectors that are worth one."""
        enough = conf.app_settings().EXACT_SEARCH_LIMIT
        for kind in stats.list_vector_counts():
            index = VectorIndex.for_model(model, kind.dimensions)
            if kind.model != model or kind.index_ready or index.kind is None:
                continue
            if always or kind.vectors > enough:
                self.stdout.write(f"Building the index of {kind.vectors} vectors ...")
                index.build()

    def drop(self, model: str) -> None:
        """Delete a model that is no longer in use."""
        if model in conf.embedding_models():
            raise CommandError(f"{model} is in use: take it out of EMBEDDER and EMBED_ALSO first.")
        self.stdout.write(f"{stats.delete_model(model)} vectors of {model} deleted.")

    def report(self) -> None:
        """Say what there is and what is missing."""
        in_use = conf.app_settings().EMBEDDER
        for kind in stats.list_vector_counts():
            state = "indexed" if kind.index_ready else "no index"
            use = ", in use" if kind.model == in_use else ""
            self.stdout.write(
                f"{kind.model}: {kind.messages} messages, {kind.vectors} vectors "
                f"of {kind.dimensions} dimensions, {state}{use}"
            )
        for waiting in stats.list_backlogs():
            error = f" ({waiting.last_error})" if waiting.last_error else ""
            self.stdout.write(
                f"{waiting.model}: {waiting.pending} pending, {waiting.failed} given up{error}"
            )
        if never := stats.count_never_enqueued():
            self.stdout.write(f"{never} messages never asked for: --all embeds them as well")
