"""Read traces that Langfuse exports from its tables, its pages and to blob storage."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion, traces
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.grouping import RecordGroups, sort_by_time
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    ImportNote,
    OmittedRecord,
    ResourceMapping,
    SourceItem,
)

NAME = "langfuse"
KEEPS_IDS = False

Json = Mapping[str, Any]

_OWN_KEYS = frozenset(
    {"sessionId", "session_id", "traceId", "trace_id", "projectId", "project_id", "htmlPath"}
)
_CONTENT_KEYS = frozenset({"input", "output"})


def detect(record: Json) -> bool:
    """Return whether a record is a trace, an observation or a session of Langfuse."""
    return any(
        not _OWN_KEYS.isdisjoint(trace)
        and not _CONTENT_KEYS.isdisjoint(trace)
        and "run_type" not in trace
        and ("timestamp" in trace or "startTime" in trace or "start_time" in trace)
        for trace in _list_traces(record)
    )


def _list_traces(record: Json) -> list[Json]:
    """Return the traces in a record: those of a session, the one of a page, or the record."""
    if isinstance(record.get("traces"), list):
        session_id = record.get("id")
        return [
            {"sessionId": session_id, **trace} for trace in coercion.to_mappings(record["traces"])
        ]
    return [coercion.to_mapping(record.get("trace")) or record]


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield a thread for each session, and for each trace without one.

    Of traces the steps are not read, and of observations only the calls of models. If there are
    files of traces and of observations, only those of traces are read.
    """
    has_traces = any(_is_of(file, "traces") for file in files)
    with closing(RecordGroups()) as groups:
        for file in files:
            if _is_of(file, "scores") or (has_traces and _is_of(file, "observations")):
                yield ImportNote(f"files without traces in {file.name.partition('/')[0]}")
                continue
            yield from read_items(file, partial(_add_traces, groups, file))
        for key, entries in groups.iter_groups():
            ordered = sort_by_time((entry["time"], entry) for entry in entries)
            turns = [
                traces.Turn(e["input"], e["output"], e["time"], e["end"], e["location"])
                for e in ordered
            ]
            owner = next(filter(None, (entry["owner"] for entry in ordered)), "")
            start = ordered[0]["start"]
            yield from traces.build_thread(NAME, key, owner, turns, resources, start)


def _is_of(file: SourceFile, name: str) -> bool:
    """Return whether a file of the blob storage is of a table, which its name or folder names."""
    folders = file.name.split("/")[:-1]
    return file.basename.startswith(name) or any(folder.startswith(name) for folder in folders)


def _get(trace: Json, *names: str) -> Any:
    return next((trace[name] for name in names if trace.get(name) not in (None, "")), None)


def _add_traces(
    groups: RecordGroups, file: SourceFile, record: Json, location: str
) -> Iterator[SourceItem]:
    for trace in _list_traces(record):
        yield from _add_trace(groups, trace, file, location)


def _add_trace(
    groups: RecordGroups, trace: Json, file: SourceFile, location: str
) -> Iterator[SourceItem]:
    if _CONTENT_KEYS.isdisjoint(trace):
        raise InvalidInput("no input and no output")
    kind = coercion.to_text(trace.get("type"))
    if kind not in ("", "GENERATION"):
        yield OmittedRecord("messages", "skipped", location, f"observation of type {kind[:40]}")
        return
    session = _get(trace, "sessionId", "session_id", "traceId", "trace_id", "id")
    if not isinstance(session, str | int):
        raise InvalidInput("no id")
    time = coercion.to_datetime(_get(trace, "timestamp", "startTime", "start_time"))
    end = coercion.to_datetime(_get(trace, "endTime", "end_time")) or time
    owner = _get(trace, "userId", "user_id")
    entry = {
        "input": trace.get("input"),
        "output": trace.get("output"),
        "time": time.timestamp() if time else None,
        "end": end.timestamp() if end else None,
        "owner": str(owner) if isinstance(owner, str | int) else "",
        "start": file.modified.timestamp(),
        "location": location,
    }
    if not groups.add(str(session), entry):
        raise InvalidInput("the session is too long")
