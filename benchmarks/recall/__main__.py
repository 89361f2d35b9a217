"""Run the recall benchmark and print its tables; BENCH_JSON names a file for the figures.

RECALL_ONLY names parts (quality, context, latency, filtered, indexing, mastra; default: all),
LOCOMO the folder of the LoCoMo data set, PEER_DIR where the reference server is, PEER_SIZES how
many messages are compared side by side (default: 20000 200000). RECALL_EMBEDDER measures the
quality, and only that, with another embedder: `sentence-transformers//folder/of/a/model`.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import servers
from tests.servers import say

PARTS = ("quality", "context", "latency", "filtered", "indexing", "mastra")
SETTINGS = "benchmarks.recall.settings"
LARGE = [("big", 50_000), *((f"mid{n}", 10_000) for n in range(10))]
SMALL = [(f"small{n:02d}", 1_000) for n in range(50)]
INDEXED = 20_000
LONG_THREAD = 20_000
PEER_SIZES = "20000 200000"
PEER_RESOURCES = 20

Figures = dict[str, Any]


def main() -> None:
    """Measure on a database of its own, which is gone afterwards."""
    servers.stop_on_terminate()
    chosen = _chosen()
    with tempfile.TemporaryDirectory(prefix="recall-benchmark-") as folder:
        var_dir = Path(folder, "var")
        os.environ.update(servers.environment(SETTINGS, var_dir))
        _prepare()
        try:
            figures = _measure(chosen, var_dir, Path(folder))
        finally:
            _release(var_dir)
    if target := os.environ.get("BENCH_JSON"):
        Path(target).write_text(json.dumps(figures, indent=1) + "\n")


def _chosen() -> list[str]:
    parts = PARTS[:1] if os.environ.get("RECALL_EMBEDDER") else PARTS
    chosen = os.environ.get("RECALL_ONLY", " ".join(parts)).replace(",", " ").split()
    if set(chosen) - set(parts):
        raise servers.ServerError(f"RECALL_ONLY knows {', '.join(parts)}")
    return chosen


def _prepare() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _release(var_dir: Path) -> None:
    from django.db import connection

    from project import embedded

    connection.close()
    embedded.release(var_dir)


def _measure(chosen: list[str], var_dir: Path, scratch: Path) -> Figures:
    figures: Figures = {}
    if "quality" in chosen:
        figures |= _quality()
    if "context" in chosen:
        figures["context_ms"] = _contexts()
    if {"latency", "filtered", "indexing"} & set(chosen):
        figures |= _large(chosen)
    if "mastra" in chosen:
        figures["mastra"] = _side_by_side(var_dir, scratch)
    return figures


def _quality() -> Figures:
    from benchmarks.recall import filling, locomo, quality

    path = locomo.folder()
    conversations = locomo.read(path) if path else []
    if not conversations:
        say("quality: the LoCoMo data set is not here; name its folder in LOCOMO\n")
        return {}
    filling.clear()
    quality.load(conversations)
    filling.vacuum()
    found = quality.measure(conversations)
    questions = sum(len(talk.questions) for talk in conversations)
    say(f"quality: {questions} questions to {len(conversations)} conversations, {_embedder()}")
    _table(found)
    return {
        "quality": {name: round(row["recall@10"], 4) for name, row in found.items()},
        "quality_details": found,
    }


def _embedder() -> str:
    from mastra_memory import conf

    return conf.app_settings().EMBEDDER


def _contexts() -> Figures:
    from benchmarks.recall import filling, latency
    from mastra_memory.embedding.vector_index import VectorIndex

    filling.clear()
    filling.fill([("long", LONG_THREAD)], per_thread=LONG_THREAD)
    found = {f"{mode}, no index": latency.of_context("long", mode=mode) for mode in latency.MODES}
    index = VectorIndex.of("local/wordllama", 256)
    index.build()
    found |= {f"{mode}, index": latency.of_context("long", mode=mode) for mode in latency.MODES}
    index.drop()  # what is filled next would go into it one by one
    say(f"context of a thread of {LONG_THREAD} messages, milliseconds")
    _table(found)
    return found


def _large(chosen: list[str]) -> Figures:
    from benchmarks.recall import filling, indexing, latency
    from mastra_memory.embedding.vector_index import VectorIndex

    filling.clear()
    total = filling.fill([*LARGE, *SMALL])
    index = VectorIndex.of("local/wordllama", 256)
    figures: Figures = {}
    if "indexing" in chosen:
        figures["indexed_per_second"] = {"without_index": indexing.measure(INDEXED)}
    _timed(f"building the index of {total} vectors", index.build)
    if "indexing" in chosen:
        figures["indexed_per_second"]["with_index"] = indexing.measure(INDEXED)
        say(f"embedded messages a second: {figures['indexed_per_second']}\n")
    filling.vacuum()
    small, big = [name for name, _ in SMALL], ["big"]
    if "latency" in chosen:
        found = {
            "recall, 1,000 in scope": latency.of_recall(small),
            "recall, 10,000 in scope": latency.of_recall([f"mid{n}" for n in range(10)]),
            "recall, 50,000 in scope": latency.of_recall(big),
            "hybrid recall, 1,000 in scope": latency.of_recall(small, mode="hybrid"),
            "hybrid recall, 50,000 in scope": latency.of_recall(big, mode="hybrid"),
            "search by words, 1,000 in scope": latency.of_search(small, "text"),
            "search by words, 50,000 in scope": latency.of_search(big, "text"),
        }
        say(f"milliseconds at {total} messages")
        _table(found)
        figures["latency_ms"] = found
    if "filtered" in chosen:
        figures["filtered_recall"] = latency.filtered_recall(small)
        say(f"recall@10 through the index, 0.5 % in scope: {figures['filtered_recall']}\n")
    return figures


def _side_by_side(var_dir: Path, scratch: Path) -> Figures:
    from benchmarks.recall import filling, indexing, latency, mastra
    from mastra_memory.embedding.vector_index import VectorIndex

    kit = Path(os.environ.get("PEER_DIR") or servers.KIT).resolve()
    kit = servers.kit_with_packages(kit, scratch)
    figures: Figures = {}
    for size in map(int, os.environ.get("PEER_SIZES", PEER_SIZES).split()):
        sizes = [(f"r{n:02d}", size // PEER_RESOURCES) for n in range(PEER_RESOURCES)]
        names = [name for name, _ in sizes]
        folder = scratch / f"talk-{size}"
        mastra.prepare(folder, sizes)
        theirs_filled = mastra.fill(kit, folder, var_dir)
        theirs, their_hits = mastra.measure(kit, folder, var_dir)
        index = VectorIndex.of("local/wordllama", 256)
        index.drop()
        filling.clear()
        filling.fill(sizes)
        index.build()
        filling.vacuum()
        ours, our_hits = latency.of_recall(names), latency.hits(names)
        fewer = sum(our < their for our, their in zip(our_hits, their_hits, strict=True))
        ours_filled = indexing.measure(min(size, INDEXED))
        found = {"ours": ours, "mastra": theirs}
        say(f"recall at {size} messages of {PEER_RESOURCES} resources, milliseconds")
        _table(found)
        say(f"messages a second: ours {ours_filled}, mastra {theirs_filled}; fewer hits: {fewer}\n")
        figures[str(size)] = {
            **found,
            "hits": {"ours": sum(our_hits), "mastra": sum(their_hits), "fewer": fewer},
            "indexed_per_second": {"ours": ours_filled, "mastra": theirs_filled},
        }
    return figures


def _table(rows: dict[str, dict[str, float]]) -> None:
    columns = list(next(iter(rows.values())))
    width = max(map(len, rows))
    say(" " * width + "".join(f"{column:>11}" for column in columns))
    for name, row in rows.items():
        say(f"{name:<{width}}" + "".join(f"{row[column]:>11.3f}" for column in columns))
    say()


def _timed(what: str, act: Callable[[], None]) -> None:
    import time

    start = time.perf_counter()
    act()
    say(f"{what}: {time.perf_counter() - start:.0f} s\n")


if __name__ == "__main__":
    try:
        main()
    except servers.ServerError as error:
        sys.exit(str(error))
