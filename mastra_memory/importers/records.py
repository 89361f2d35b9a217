"""What every source yields: plain values to store, and records that are left out with a reason."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from mastra_memory.db import json_text

RecordKind = Literal["threads", "messages", "branch copies", "working memories", "observations"]
"""What is counted. Copies are messages that a branch shares with the thread it was edited from."""

ImportOutcome = Literal["stored", "updated", "already there", "joined", "skipped", "refused"]
"""What became of a record. A joined one lives on inside another message."""

_NAMESPACE = uuid.UUID("5e0c8e0b-6b5c-4c53-9d0e-2a4b7f6f1d34")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedThread:
    """A thread to store."""

    id: str
    resource_id: str
    title: str = ""
    title_source: str = ""
    metadata: Mapping[str, Any] | None = None
    clone_source_id: str | None = None
    created_at: datetime
    updated_at: datetime
    location: str
    """The place in the source, for the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """A message to store; its thread comes before it or is there already."""

    id: str
    thread_id: str
    resource_id: str
    role: str
    content: Mapping[str, Any]
    """Format 2."""
    created_at: datetime
    type: str = "v2"
    edited_at: datetime | None = None
    is_copy: bool = False
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRevision:
    """A text that a working memory was."""

    version: int
    content: str
    source: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedWorkingMemory:
    """The text kept for a thread, or without one for a resource."""

    resource_id: str
    thread_id: str | None = None
    content: str
    created_at: datetime
    updated_at: datetime
    revisions: Sequence[ImportedRevision] = ()
    """Oldest first; empty: the text becomes its own first revision."""
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedObservationalRecord:
    """One generation of observations, with the chunks that wait for activation."""

    id: str
    resource_id: str
    thread_id: str | None
    """None in resource scope."""
    generation_count: int
    values: Mapping[str, Any]
    """The other fields, named as in `ObservationalRecord`."""
    chunks: Sequence[Mapping[str, Any]] = ()
    """Fields of `ObservationChunk`, oldest first."""
    location: str


@dataclass(frozen=True, slots=True)
class OmittedRecord:
    """A record that is not stored by itself."""

    kind: RecordKind
    outcome: Literal["joined", "skipped", "refused"]
    location: str
    reason: str
    """Why, in words that many records may share."""
    detail: str = ""
    """How the record begins, or what else helps whoever reads the report."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Something a person should know that refuses nothing; equal ones are counted."""

    text: str


ImportedObject = (
    ImportedThread | ImportedMessage | ImportedWorkingMemory | ImportedObservationalRecord
)
SourceItem = ImportedObject | OmittedRecord | ImportNote


@dataclass(frozen=True, slots=True)
class ResourceMapping:
    """Whose the imported things become: one resource, or a prefix and what the source says."""

    resource: str | None = None
    prefix: str = ""

    def resolve(self, source_id: str) -> str:
        """The resource for what belongs to `source_id` in the source."""
        return self.resource if self.resource is not None else f"{self.prefix}{source_id}"


def derive_id(*identity: str) -> str:
    """An id that is the same whenever the same thing is imported again."""
    return str(uuid.uuid5(_NAMESPACE, json_text.dumps(identity)))


def hash_content(value: Any) -> str:
    """The identity of something that has no id. Raises `InvalidInput` for what nests too deeply."""
    return hashlib.sha256(json_text.dumps(value).encode()).hexdigest()


def build_origin_metadata(source: str, source_id: str, **more: Any) -> dict[str, Any]:
    """Thread metadata that says where the thread came from."""
    known = {"id": source_id, **more}
    return {"import": {"from": source, **{k: v for k, v in known.items() if v not in ("", None)}}}


def get_kind(item: ImportedObject) -> RecordKind:
    """Under which name an item is counted."""
    if isinstance(item, ImportedMessage):
        return "branch copies" if item.is_copy else "messages"
    if isinstance(item, ImportedThread):
        return "threads"
    return "working memories" if isinstance(item, ImportedWorkingMemory) else "observations"
