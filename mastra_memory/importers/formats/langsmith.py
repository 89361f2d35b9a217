"""Read runs that LangSmith exports as JSON, with messages of LangChain or of OpenAI."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion, traces
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.grouping import RecordGroups, sort_by_time
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import OmittedRecord, ResourceMapping, SourceItem

NAME = "langsmith"
KEEPS_IDS = False

Json = Mapping[str, Any]

_THREAD_KEYS = ("thread_id", "session_id", "conversation_id")
"""Keys of the metadata by which LangSmith groups runs into threads."""
_OWNER_KEYS = ("user_id", "userId", "user")


def detect(record: Json) -> bool:
    """Return whether a record is a run of LangSmith."""
    return "run_type" in record and ("inputs" in record or "outputs" in record)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each thread of LangSmith, and for each trace that is in none.

    Of each trace the root run is read. If the file has no root runs, those of models are.
    """
    with closing(RecordGroups()) as groups:
        for file in files:
            yield from read_items(file, partial(_add_run, groups, file))
        for key, entries in groups.iter_groups():
            yield from _build_thread(key, entries, resources)


def _get_metadata(run: Json) -> Json:
    extra = coercion.to_mapping(run.get("extra"))
    return {
        **coercion.to_mapping(run.get("metadata")),
        **coercion.to_mapping(extra.get("metadata")),
    }


def _find_text(value: Json, keys: Sequence[str]) -> str:
    found = (value.get(key) for key in keys)
    return next((str(item) for item in found if isinstance(item, str | int) and item), "")


def _add_run(groups: RecordGroups, file: SourceFile, run: Json, location: str) -> None:
    if "inputs" not in run and "outputs" not in run:
        raise InvalidInput("no inputs and no outputs")
    metadata = _get_metadata(run)
    thread = _find_text(metadata, _THREAD_KEYS) or _find_text(run, ("trace_id", "id", "run_id"))
    if not thread:
        raise InvalidInput("no id")
    time = coercion.to_datetime(run.get("start_time"))
    end = coercion.to_datetime(run.get("end_time")) or time
    entry = {
        "input": run.get("inputs"),
        "output": run.get("outputs"),
        "is_root": not run.get("parent_run_id"),
        "is_model": run.get("run_type") == "llm",
        "time": time.timestamp() if time else None,
        "end": end.timestamp() if end else None,
        "owner": _find_text(metadata, _OWNER_KEYS),
        "start": file.modified.timestamp(),
        "location": location,
    }
    if not groups.add(thread, entry):
        raise InvalidInput("the thread is too long")


def _build_thread(
    key: str, entries: Sequence[Any], resources: ResourceMapping
) -> Iterator[SourceItem]:
    kind = "is_root" if any(entry["is_root"] for entry in entries) else "is_model"
    for entry in entries:
        if not entry[kind]:
            reason = "step of another run"
            yield OmittedRecord("messages", "skipped", entry["location"], reason)
    ordered = sort_by_time((entry["time"], entry) for entry in entries if entry[kind])
    if not ordered:
        return
    turns = [
        traces.Turn(e["input"], e["output"], e["time"], e["end"], e["location"]) for e in ordered
    ]
    owner = next(filter(None, (entry["owner"] for entry in entries)), "")
    start = ordered[0]["start"]
    yield from traces.build_thread(NAME, key, owner, turns, resources, start)
