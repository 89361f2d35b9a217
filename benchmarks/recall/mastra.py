"""Mastra's own Memory, filled and asked like ours with the same vectors (`mastra.mjs`)."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import orjson
import psycopg

from benchmarks import contenders
from benchmarks.recall import latency, talk
from mastra_memory import conf
from mastra_memory.embedding import embedder
from tests import servers

SCRIPT = Path(__file__).with_name("mastra.mjs")
DATABASE = "mastra"


def prepare(folder: Path, sizes: Sequence[tuple[str, int]]) -> None:
    """Write the messages, the questions and all vectors into files."""
    resources = [resource for resource, _ in sizes]
    rows = list(talk.messages(sizes))
    count = latency.WARM_UP + latency.ROUNDS
    questions = [talk.question(number) for number in range(count)]
    texts = list(dict.fromkeys([*(row[4] for row in rows), *questions]))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "texts.jsonl").open("wb") as file:
        file.writelines(orjson.dumps(text) + b"\n" for text in texts)
    with (folder / "vectors.f32").open("wb") as file:
        for start in range(0, len(texts), 5_000):
            made = embedder.embed_passages(
                conf.app_settings().EMBEDDER, texts[start : start + 5_000]
            )
            for vector in made.vectors:
                file.write(vector.tobytes())  # type: ignore[attr-defined]
    names = ("id", "threadId", "resourceId", "role", "text", "createdAt")
    with (folder / "messages.jsonl").open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(dict(zip(names, row, strict=True))) + b"\n")
    with (folder / "asked.jsonl").open("wb") as file:
        for number, text in enumerate(questions):
            resource = resources[number % len(resources)]
            asked = {"threadId": f"{resource}-0", "resourceId": resource, "text": text}
            file.write(orjson.dumps(asked) + b"\n")


def fill(kit: Path, folder: Path, var_dir: Path) -> float:
    """Save everything into a fresh database; messages a second."""
    with psycopg.connect(_url(var_dir, "postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        connection.execute(f"CREATE DATABASE {DATABASE}")
    done = _run(kit, folder, var_dir, "fill")
    with psycopg.connect(_url(var_dir, DATABASE), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return round(done["messages"] / done["seconds"], 1)


def measure(kit: Path, folder: Path, var_dir: Path) -> tuple[latency.Figures, list[int]]:
    """Milliseconds of a recall, and how many messages each finds."""
    done = _run(kit, folder, var_dir, "measure")
    taken = done["taken"]
    figures = {"p50": round(median(taken), 2), "p95": round(quantiles(taken, n=20)[-1], 2)}
    return figures, done["hits"]


def _run(kit: Path, folder: Path, var_dir: Path, command: str) -> Any:
    # Beside the kit's packages: Node looks for them from where a script lies.
    script = kit / "recall-benchmark.mjs"
    script.write_bytes(SCRIPT.read_bytes())
    try:
        done = subprocess.run(
            [str(servers.node(kit)), str(script), command, str(folder)],
            env=os.environ | {"PGURL": _url(var_dir, DATABASE), "WARM_UP": str(latency.WARM_UP)},
            cwd=kit,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        script.unlink()
    if done.returncode:
        raise servers.ServerError(f"Mastra's side failed.\n{done.stderr[-2_000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _url(var_dir: Path, name: str) -> str:
    return contenders.database_url(var_dir, name)
