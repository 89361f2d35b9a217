"""The values that every import format yields: objects to store, omitted records, and notes."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from mastra_memory.db import json_text

RecordKind = Literal["threads", "messages", "branch copies", "working memories", "observations"]
"""The kinds that are counted. Branch copies are the messages that a branch of a conversation
shares with the thread it was cloned from."""

ImportOutcome = Literal["stored", "updated", "already there", "joined", "skipped", "refused"]
"""What happened to a record. A joined record became part of a message, as a tool result does."""

_ID_NAMESPACE = uuid.UUID("5e0c8e0b-6b5c-4c53-9d0e-2a4b7f6f1d34")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedThread:
    """A thread to store."""

    id: str
    resource_id: str
    title: str = ""
    title_source: str = ""
    """A value of `Thread.TitleSource`."""
    metadata: Mapping[str, Any] | None = None
    clone_source_id: str | None = None
    created_at: datetime
    updated_at: datetime
    location: str
    """Where the record is in the source, for the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """A message to store. Its thread exists already or is yielded before it."""

    id: str
    thread_id: str
    resource_id: str
    role: str
    content: Mapping[str, Any]
    """Content in Mastra's format 2."""
    created_at: datetime
    type: str = "v2"
    edited_at: datetime | None = None
    is_copy: bool = False
    """Whether the message is counted as a branch copy."""
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRevision:
    """An earlier text of a working memory."""

    version: int
    content: str
    source: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedWorkingMemory:
    """The working memory of a thread, or of a resource if `thread_id` is None."""

    resource_id: str
    thread_id: str | None = None
    content: str
    created_at: datetime
    updated_at: datetime
    revisions: Sequence[ImportedRevision] = ()
    """All revisions, oldest first. If empty, `content` becomes the first revision."""
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedObservationalRecord:
    """One generation of observations, with its chunks."""

    id: str
    resource_id: str
    thread_id: str | None
    """None for a record of a resource."""
    generation_count: int
    values: Mapping[str, Any]
    """The other fields, under their names in the model `ObservationalRecord`."""
    chunks: Sequence[Mapping[str, Any]] = ()
    """Fields of the model `ObservationChunk`, oldest chunk first."""
    pending_message_ids: Sequence[str] = ()
    """Messages that are not observed although their time is not later than the cursor."""
    location: str


@dataclass(frozen=True, slots=True)
class OmittedRecord:
    """A record that is not stored as an object of its own."""

    kind: RecordKind
    outcome: Literal["joined", "skipped", "refused"]
    location: str
    reason: str
    """Why. The report counts records with the same reason together."""
    detail: str = ""
    """The beginning of the record, or other details of this record alone."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """A remark for the report about a record that is stored. Equal notes are counted together."""

    text: str


ImportedObject = (
    ImportedThread | ImportedMessage | ImportedWorkingMemory | ImportedObservationalRecord
)
SourceItem = ImportedObject | OmittedRecord | ImportNote


@dataclass(frozen=True, slots=True)
class ResourceMapping:
    """How owners in the source become resources: all become one, or each gets a prefix."""

    resource: str | None = None
    prefix: str = ""

    def resolve(self, source_id: str) -> str:
        """Return the id of the resource for an owner in the source."""
        return self.resource if self.resource is not None else f"{self.prefix}{source_id}"


def derive_id(*identity: str) -> str:
    """Return a UUID that depends on `identity` only, so that a second import finds the same id."""
    return str(uuid.uuid5(_ID_NAMESPACE, json_text.dumps(identity)))


def hash_content(value: Any) -> str:
    """Return a hash of a JSON value, as the identity of a record that has no id.

    Raises:
        InvalidInput: The value is nested too deeply.
    """
    return hashlib.sha256(json_text.dumps(value).encode()).hexdigest()


def build_origin_metadata(source: str, source_id: str, **details: Any) -> dict[str, Any]:
    """Return thread metadata that names the format and the id in the source.

    Empty details are left out.
    """
    values = {"id": source_id, **details}
    return {"import": {"from": source, **{k: v for k, v in values.items() if v not in ("", None)}}}


def get_kind(item: ImportedObject) -> RecordKind:
    """Return the kind under which an object is counted."""
    if isinstance(item, ImportedMessage):
        return "branch copies" if item.is_copy else "messages"
    if isinstance(item, ImportedThread):
        return "threads"
    return "working memories" if isinstance(item, ImportedWorkingMemory) else "observations"
