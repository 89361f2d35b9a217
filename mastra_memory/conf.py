"""The settings of this app: one dict, `MASTRA_MEMORY`, typed here and read live."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from django.conf import settings

from mastra_memory.exceptions import AgentNotFound, MemoryNotConfigured
from mastra_memory.options import MemoryOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSettings:
    """Every setting with its default."""

    OPTIONS: Mapping[str, Any] = field(default_factory=dict)
    """What every agent gets, in Mastra's terms: `{"lastMessages": 20, ...}`, or snake_case."""
    AGENTS: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    """Named agents, each with what differs from OPTIONS; None is an agent without memory.
    When none is named, every `agentId` gets OPTIONS."""
    RESOURCE_FOR_REQUEST: str = "mastra_memory.api.permissions.resource_of_user"
    """Dotted path: request to resource id, None for a caller who may see all."""
    ADMIN_THREADS: str = ""
    """Dotted path: (request, Thread queryset) to the threads that this member of staff may see."""
    MAX_BODY_BYTES: int = 20 * 1024 * 1024
    """The largest request body that is taken, in bytes."""
    MAX_PER_PAGE: int = 1000
    """The largest page for callers who are not unscoped."""
    SEARCH_LANGUAGE: str = "english"
    """PostgreSQL's text search configuration. Run `manage.py mastra_reindex` after a change."""


def app_settings() -> AppSettings:
    """The settings as they are now; never cached, so that `override_settings` works."""
    return AppSettings(**getattr(settings, "MASTRA_MEMORY", {}))


def unknown_settings() -> list[str]:
    """Names in `MASTRA_MEMORY` that mean nothing here."""
    known = {entry.name for entry in fields(AppSettings)}
    return sorted(set(getattr(settings, "MASTRA_MEMORY", {})) - known)


def agent_options(agent_id: str | None) -> MemoryOptions:
    """The options of an agent; of no agent, OPTIONS.

    Raises `AgentNotFound` for an id that is none of the configured agents, and
    `MemoryNotConfigured` for an agent without memory.
    """
    known = app_settings()
    if agent_id is None or not known.AGENTS:
        return MemoryOptions.parse(known.OPTIONS)
    if agent_id not in known.AGENTS:
        raise AgentNotFound
    own = known.AGENTS[agent_id]
    if own is None:
        raise MemoryNotConfigured
    return MemoryOptions.parse(known.OPTIONS, own)
