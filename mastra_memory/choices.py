"""What a caller may choose: which messages to list, to bring along, to copy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Which messages of a thread are meant; all conditions must hold."""

    start: datetime | None = None
    end: datetime | None = None
    start_exclusive: bool = False
    end_exclusive: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Top-level keys of the content's metadata, equal in type and value."""
    roles: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """One message to bring along, with so many neighbours on each side."""

    id: str
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSelection:
    """Which messages a clone gets: all conditions must hold, then the newest `limit` stay."""

    limit: int | None = None
    """None, 0 and less mean no limit."""
    start: datetime | None = None
    end: datetime | None = None
    """Both inclusive."""
    message_ids: Sequence[str] = ()
    """Empty means any; ids of other threads are ignored."""
