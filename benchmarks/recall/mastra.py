"""Measure Mastra's own Memory with the same messages, questions and vectors (`mastra.mjs`)."""

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import psycopg

from benchmarks.recall import corpus, latency
from benchmarks.targets import MASTRA_DATABASE, database_url
from mastra_memory import conf
from mastra_memory.embedding import embedder
from tests.support import servers

SCRIPT = Path(__file__).with_name("mastra.mjs")
EMBEDDING_BATCH = 5_000


def write_input(folder: Path, sizes: Sequence[tuple[str, int]]) -> None:
    """Write the messages, the questions and the vectors of both to files."""
    resources = [resource for resource, _ in sizes]
    rows = list(corpus.generate_messages(sizes))
    count = latency.WARM_UP_CALLS + latency.MEASURED_CALLS
    questions = [corpus.generate_question(number) for number in range(count)]
    texts = list(dict.fromkeys([*(row.text for row in rows), *questions]))
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "texts.jsonl", texts)
    with (folder / "vectors.f32").open("wb") as file:
        for start in range(0, len(texts), EMBEDDING_BATCH):
            embedded = embedder.embed_passages(
                conf.app_settings().EMBEDDER, texts[start : start + EMBEDDING_BATCH]
            )
            for vector in embedded.vectors:
                file.write(vector.tobytes())  # type: ignore[attr-defined]
    messages = (
        {
            "id": row.id,
            "threadId": row.thread_id,
            "resourceId": row.resource_id,
            "role": row.role,
            "text": row.text,
            "createdAt": row.created_at,
        }
        for row in rows
    )
    _write_lines(folder / "messages.jsonl", messages)
    owners = (resources[number % len(resources)] for number in range(count))
    _write_lines(
        folder / "questions.jsonl",
        (
            {"threadId": f"{resource}-0", "resourceId": resource, "text": text}
            for resource, text in zip(owners, questions, strict=True)
        ),
    )


def _write_lines(path: Path, values: Iterable[Any]) -> None:
    with path.open("wb") as file:
        file.writelines(orjson.dumps(value) + b"\n" for value in values)


def fill(kit: Path, folder: Path, var_dir: Path) -> float:
    """Save all messages into a new database and return the messages per second."""
    with psycopg.connect(database_url(var_dir, "postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {MASTRA_DATABASE}")
        connection.execute(f"CREATE DATABASE {MASTRA_DATABASE}")
    output = _run_script(kit, folder, var_dir, "fill")
    with psycopg.connect(database_url(var_dir, MASTRA_DATABASE), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    speed: float = round(output["messages"] / output["seconds"], 1)
    return speed


def measure(kit: Path, folder: Path, var_dir: Path) -> tuple[latency.Figures, list[int]]:
    """Return the milliseconds of a recall and the number of messages that each recall finds."""
    output = _run_script(kit, folder, var_dir, "measure")
    return latency.summarize(output["milliseconds"]), output["matches"]


def _run_script(kit: Path, folder: Path, var_dir: Path, command: str) -> Any:
    # Node.js looks for packages from the folder of the script, so it is copied next to the kit's.
    script = kit / "recall-benchmark.mjs"
    script.write_bytes(SCRIPT.read_bytes())
    try:
        completed = subprocess.run(
            [str(servers.node(kit)), str(script), command, str(folder)],
            env=os.environ
            | {"PGURL": database_url(var_dir, MASTRA_DATABASE)}
            | {"WARM_UP_CALLS": str(latency.WARM_UP_CALLS)},
            cwd=kit,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        script.unlink()
    if completed.returncode:
        raise servers.ServerError(f"{SCRIPT.name} {command} failed.\n{completed.stderr[-2_000:]}")
    return json.loads(completed.stdout.splitlines()[-1])
