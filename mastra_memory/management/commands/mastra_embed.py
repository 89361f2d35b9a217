"""Create, rebuild, report on and delete the vectors that semantic recall uses."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from mastra_memory import conf
from mastra_memory.embedding import stats
from mastra_memory.exceptions import MastraMemoryError
from mastra_memory.memory import maintenance


class Command(BaseCommand):
    """Embed messages; the command can be interrupted, repeated, and run next to workers."""

    help = (
        "Embed the messages that have no vectors yet, then build an index if there are many. To "
        "change the embedder without an interruption: add the new one to EMBED_ALSO, run "
        "`mastra_embed --model NEW`, make it EMBEDDER, and run `mastra_embed --drop OLD`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument("--model", help="embedder to use; default: the setting EMBEDDER")
        parser.add_argument(
            "--all",
            action="store_true",
            help="also embed messages that were saved without semantic recall",
        )
        parser.add_argument(
            "--again", action="store_true", help="also embed messages that already have vectors"
        )
        parser.add_argument("--retry", action="store_true", help="retry messages that failed")
        parser.add_argument(
            "--report", action="store_true", help="print the state and change nothing"
        )
        parser.add_argument(
            "--index", action="store_true", help="build the index even for few vectors"
        )
        parser.add_argument("--no-index", action="store_true", help="do not build an index")
        parser.add_argument("--drop", metavar="MODEL", help="delete the vectors of this model")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run what the options ask for, then print a report."""
        try:
            if options["drop"]:
                self._drop(options["drop"])
            elif not options["report"]:
                self._embed(options["model"] or conf.app_settings().EMBEDDER, options)
        except MastraMemoryError as error:
            raise CommandError(str(error)) from error
        self._print_report()

    def _drop(self, model: str) -> None:
        count = maintenance.drop_embeddings(model)
        self.stdout.write(f"Deleted {count} vectors of {model}.")

    def _embed(self, model: str, options: dict[str, Any]) -> None:
        pending = maintenance.request_embeddings(
            model, everything=options["all"], again=options["again"], retry=options["retry"]
        )
        dropped = False
        if not options["no_index"] and (
            dropped := maintenance.drop_outgrown_indexes(model, pending)
        ):
            self.stdout.write(
                "The index will be rebuilt. Until then searches compare all vectors, which is "
                "slower."
            )
        with tqdm(total=pending, unit="message", desc=model, disable=None) as bar:
            for count in maintenance.embed_queued_messages(model):
                bar.update(count)
        if not options["no_index"]:
            maintenance.build_indexes(
                model, always=options["index"] or dropped, before_build=self._print_build
            )

    def _print_build(self, vectors: int) -> None:
        self.stdout.write(f"Building the index of {vectors} vectors ...")

    def _print_report(self) -> None:
        in_use = conf.app_settings().EMBEDDER
        for kind in stats.list_vector_counts():
            state = "indexed" if kind.index_ready else "no index"
            use = ", in use" if kind.model == in_use else ""
            self.stdout.write(
                f"{kind.model}: {kind.messages} messages, {kind.vectors} vectors "
                f"of {kind.dimensions} dimensions, {state}{use}"
            )
        for backlog in stats.list_backlogs():
            error = f" ({backlog.last_error})" if backlog.last_error else ""
            self.stdout.write(
                f"{backlog.model}: {backlog.pending} pending, {backlog.failed} failed{error}"
            )
        if count := stats.count_never_enqueued():
            self.stdout.write(
                f"{count} messages were saved without semantic recall; --all embeds them too."
            )
