"""Run the context benchmark and print its tables.

Environment variables:

    BENCH_JSON         file for the results
    LOCOMO             folder of the LoCoMo data set
    CONTEXT_QUESTIONS  take every n-th question only; default: 1
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks import temporary
from tests.support import servers
from tests.support.servers import say

SETTINGS = "benchmarks.context.settings"
HELD_OUT = "conv-44"
"""The weights were chosen without this conversation."""


def main() -> None:
    """Measure on a temporary database and write the results."""
    from benchmarks.recall import __main__ as recall_benchmark

    servers.stop_on_terminate()
    with tempfile.TemporaryDirectory(prefix="context-benchmark-") as folder:
        var_dir = Path(folder, "var")
        os.environ.update(servers.environment(SETTINGS, var_dir))
        recall_benchmark.create_tables()
        try:
            results = _measure(int(os.environ.get("CONTEXT_QUESTIONS", "1")))
        finally:
            recall_benchmark.stop_database(var_dir)
    if path := os.environ.get("BENCH_JSON"):
        Path(path).write_text(json.dumps(results, indent=1) + "\n")


def _measure(step: int) -> dict[str, object]:
    from benchmarks.context import evidence, logs
    from benchmarks.recall import loading, locomo

    folder = locomo.find_folder()
    if folder is None:
        raise servers.ServerError("The LoCoMo data set was not found; set LOCOMO to its folder")
    threads = logs.load(locomo.read(folder, in_one_thread=True))
    loading.vacuum()
    groups = {
        "tuned on": [t for t in threads if t.conversation.resource_id != HELD_OUT],
        f"held out ({HELD_OUT})": [t for t in threads if t.conversation.resource_id == HELD_OUT],
    }
    results: dict[str, object] = {}
    for name, group in groups.items():
        if not group:
            continue
        questions = sum(len(thread.conversation.questions[::step]) for thread in group)
        log = evidence.measure_log(group)
        rows = evidence.measure(group, step)
        results[name] = {"questions": questions, "log": log, "contexts": rows}
        say(f"{name}: {questions} questions to {len(group)} conversations")
        say(", ".join(f"{key} {value:.3f}" for key, value in log.items()))
        temporary.print_table(rows)
    return results


if __name__ == "__main__":
    try:
        main()
    except servers.ServerError as error:
        sys.exit(str(error))
