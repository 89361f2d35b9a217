"""Run the recall benchmark and print its tables.

Environment variables:

    BENCH_JSON       file for the results
    RECALL_ONLY      parts to run; default: all
                     quality: share of the right messages that is found for questions of LoCoMo
                     context: time of an agent's whole context in a long thread
                     latency: time of recall and search in small and large resources
                     filtered: how much the index finds in a small resource, compared with an
                     exact search
                     indexing: embedded messages per second, with and without the index
                     mastra: comparison with Mastra's own recall
    RECALL_EMBEDDER  measure only the quality, with another embedder:
                     sentence-transformers//folder/of/a/model
    BENCH_BEFORE     file of an earlier run; its quality is printed too
    LOCOMO           folder of the LoCoMo data set
    PEER_DIR         folder of the reference server; default: tests/conformance
    PEER_SIZES       numbers of messages for the comparison with Mastra; default: 20000 200000
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import temporary
from tests.support import servers
from tests.support.servers import say

PARTS = ("quality", "context", "latency", "filtered", "indexing", "mastra")
SETTINGS = "benchmarks.recall.settings"
LARGE_RESOURCES = [("big", 50_000), *((f"mid{n}", 10_000) for n in range(10))]
SMALL_RESOURCES = [(f"small{n:02d}", 1_000) for n in range(50)]
EMBEDDED_MESSAGES = 20_000
LONG_THREAD_MESSAGES = 20_000
PEER_SIZES = "20000 200000"
PEER_RESOURCES = 20

Results = dict[str, Any]


def main() -> None:
    """Measure on a temporary database and write the results."""
    servers.stop_on_terminate()
    parts = _selected_parts()
    with tempfile.TemporaryDirectory(prefix="recall-benchmark-") as folder:
        var_dir = Path(folder, "var")
        os.environ.update(servers.environment(SETTINGS, var_dir))
        create_tables()
        try:
            results = _measure(parts, var_dir, Path(folder))
        finally:
            stop_database(var_dir)
    if path := os.environ.get("BENCH_JSON"):
        Path(path).write_text(json.dumps(results, indent=1) + "\n")


def _selected_parts() -> list[str]:
    available = PARTS[:1] if os.environ.get("RECALL_EMBEDDER") else PARTS
    selected = os.environ.get("RECALL_ONLY", " ".join(available)).replace(",", " ").split()
    if unknown := set(selected) - set(available):
        raise servers.ServerError(
            f"RECALL_ONLY: unknown parts {sorted(unknown)}. Known are {', '.join(available)}."
        )
    return selected


def create_tables() -> None:
    """Set up Django and migrate."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def stop_database(var_dir: Path) -> None:
    """Stop the database of this process."""
    from django.db import connection

    from project import embedded_postgres

    connection.close()
    embedded_postgres.release(var_dir)


def _measure(parts: list[str], var_dir: Path, scratch: Path) -> Results:
    results: Results = {}
    if "quality" in parts:
        results |= _measure_quality()
    if "context" in parts:
        results["context_ms"] = _measure_contexts()
    if {"latency", "filtered", "indexing"} & set(parts):
        results |= _measure_large_database(parts)
    if "mastra" in parts:
        results["mastra"] = _compare_with_mastra(var_dir, scratch)
    return results


def _measure_quality() -> Results:
    from benchmarks.recall import loading, locomo, quality
    from mastra_memory import conf

    folder = locomo.find_folder()
    if folder is None or not locomo.read(folder):
        say("quality: skipped, the LoCoMo data set was not found; set LOCOMO to its folder\n")
        return {}
    details: dict[str, dict[str, float]] = {}
    for suffix, in_one_thread in (("", False), (", one thread", True)):
        conversations = locomo.read(folder, in_one_thread=in_one_thread)
        loading.clear()
        quality.load(conversations)
        loading.vacuum()
        measured = quality.measure(conversations)
        details |= {f"{name}{suffix}": row for name, row in measured.items()}
    questions = sum(len(conversation.questions) for conversation in conversations)
    embedder = conf.app_settings().EMBEDDER
    say(f"quality: {questions} questions about {len(conversations)} conversations, {embedder}")
    temporary.print_table(details | _read_earlier_quality())
    return {
        "quality": {name: round(row["recall@10"], 4) for name, row in details.items()},
        "quality_details": details,
    }


def _read_earlier_quality() -> dict[str, dict[str, float]]:
    """Return the quality in the file `BENCH_BEFORE`, or nothing if it is not set."""
    path = os.environ.get("BENCH_BEFORE")
    details = json.loads(Path(path).read_text())["quality_details"] if path else {}
    return {f"before: {name}": row for name, row in details.items()}


def _measure_contexts() -> Results:
    from benchmarks.recall import latency, loading
    from mastra_memory.embedding.vector_index import VectorIndex

    def measure(suffix: str) -> Results:
        return {
            f"{mode}, {suffix}": latency.measure_context("long", mode=mode)
            for mode in latency.MODES
        }

    loading.clear()
    loading.load([("long", LONG_THREAD_MESSAGES)], per_thread=LONG_THREAD_MESSAGES)
    rows = measure("no index")
    index = VectorIndex.for_model("local/wordllama", 256)
    index.build()
    rows |= measure("index")
    index.drop()  # loading the next messages is slow with an index
    say(f"context of a thread of {LONG_THREAD_MESSAGES} messages, milliseconds")
    temporary.print_table(rows)
    return rows


def _measure_large_database(parts: list[str]) -> Results:
    from benchmarks.recall import embedding_rate, latency, loading
    from mastra_memory.embedding.vector_index import VectorIndex

    loading.clear()
    total = loading.load([*LARGE_RESOURCES, *SMALL_RESOURCES])
    index = VectorIndex.for_model("local/wordllama", 256)
    results: Results = {}
    if "indexing" in parts:
        results["indexed_per_second"] = {"without_index": embedding_rate.measure(EMBEDDED_MESSAGES)}
    started = time.perf_counter()
    index.build()
    say(f"building the index of {total} vectors: {time.perf_counter() - started:.0f} s\n")
    if "indexing" in parts:
        results["indexed_per_second"]["with_index"] = embedding_rate.measure(EMBEDDED_MESSAGES)
        say(f"embedded messages a second: {results['indexed_per_second']}\n")
    loading.vacuum()
    small = [name for name, _ in SMALL_RESOURCES]
    if "latency" in parts:
        results["latency_ms"] = _measure_latency(small, total)
    if "filtered" in parts:
        results["filtered_recall"] = latency.measure_index_recall(small)
        say(f"recall@10 of the index, 0.5 % in scope: {results['filtered_recall']}\n")
    return results


def _measure_latency(small: list[str], total: int) -> Results:
    from benchmarks.recall import latency

    big, middle = ["big"], [f"mid{n}" for n in range(10)]
    rows = {
        "recall, 1,000 in scope": latency.measure_recall(small),
        "recall, 10,000 in scope": latency.measure_recall(middle),
        "recall, 50,000 in scope": latency.measure_recall(big),
        "hybrid recall, 1,000 in scope": latency.measure_recall(small, mode="hybrid"),
        "hybrid recall, 50,000 in scope": latency.measure_recall(big, mode="hybrid"),
        "search by words, 1,000 in scope": latency.measure_search(small, "text"),
        "search by words, 50,000 in scope": latency.measure_search(big, "text"),
    }
    say(f"milliseconds with {total} messages")
    temporary.print_table(rows)
    return rows


def _compare_with_mastra(var_dir: Path, scratch: Path) -> Results:
    kit = Path(os.environ.get("PEER_DIR") or servers.KIT).resolve()
    kit = servers.kit_with_packages(kit, scratch)
    sizes = map(int, os.environ.get("PEER_SIZES", PEER_SIZES).split())
    return {str(size): _compare_at_size(size, kit, var_dir, scratch) for size in sizes}


def _compare_at_size(size: int, kit: Path, var_dir: Path, scratch: Path) -> Results:
    from benchmarks.recall import embedding_rate, latency, loading, mastra
    from mastra_memory.embedding.vector_index import VectorIndex

    resource_sizes = [(f"r{n:02d}", size // PEER_RESOURCES) for n in range(PEER_RESOURCES)]
    resources = [name for name, _ in resource_sizes]
    folder = scratch / f"messages-{size}"
    mastra.write_input(folder, resource_sizes)
    mastra_rate = mastra.fill(kit, folder, var_dir)
    mastra_latency, mastra_matches = mastra.measure(kit, folder, var_dir)
    index = VectorIndex.for_model("local/wordllama", 256)
    index.drop()
    loading.clear()
    loading.load(resource_sizes)
    index.build()
    loading.vacuum()
    our_latency = latency.measure_recall(resources)
    our_matches = latency.count_matches(resources)
    fewer = sum(ours < theirs for ours, theirs in zip(our_matches, mastra_matches, strict=True))
    our_rate = embedding_rate.measure(min(size, EMBEDDED_MESSAGES))
    rows = {"ours": our_latency, "mastra": mastra_latency}
    say(f"recall with {size} messages of {PEER_RESOURCES} resources, milliseconds")
    temporary.print_table(rows)
    say(f"messages a second: ours {our_rate} embedded, mastra {mastra_rate} saved and embedded")
    say(f"recalls in which we find fewer messages: {fewer}\n")
    return {
        **rows,
        "hits": {"ours": sum(our_matches), "mastra": sum(mastra_matches), "fewer": fewer},
        "indexed_per_second": {"ours": our_rate, "mastra": mastra_rate},
    }


if __name__ == "__main__":
    try:
        main()
    except servers.ServerError as error:
        sys.exit(str(error))
