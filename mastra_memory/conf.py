"""The settings of this app: one dict, `MASTRA_MEMORY`, typed here and read live."""

from collections.abc import Mapping, Sequence
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
    MODEL: str = "local/extractive"
    """`provider/model` of the text model for titles and summaries; the default calls none."""
    PROVIDERS: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Per provider `base_url` and `api_key`, where the environment does not say them. A provider
    that is none of pydantic-ai's must speak the OpenAI protocol at its `base_url`."""
    PRICES: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """US dollars for a million `input` and `output` tokens of a `provider/model`, where the list
    of public prices does not know it."""
    MODEL_TIMEOUT: float = 60.0
    """Seconds that one call to a model may take."""
    TOKEN_COUNTER: str = "mastra_memory.content.tokens.HeuristicCounter"
    """Dotted path of the class that counts tokens; see `tokens.TokenCounter`."""
    RESOURCE_FOR_REQUEST: str = "mastra_memory.api.permissions.resource_of_user"
    """Dotted path: request to resource id, None for a caller who may see all."""
    ADMIN_THREADS: str = ""
    """Dotted path: (request, Thread queryset) to the threads that this member of staff may see."""
    REDACT: Sequence[str] = ("email", "phone", "card")
    """What is masked for people without the right to see it: `email`, `phone`, `card`, and regular
    expressions of your own."""
    CONTENT_SECURITY_POLICY: bool = True
    """Send a strict Content-Security-Policy with our admin pages; off if you send your own."""
    MAX_BODY_BYTES: int = 20 * 1024 * 1024
    """The largest request body that is taken, in bytes."""
    MAX_BODY_VALUES: int = 1_000_000
    """The most names and values that the JSON of a request body may hold. Python objects take up
    to 100 times the bytes of the JSON text they are parsed from, so `MAX_BODY_BYTES` alone does not
    bound memory."""
    MAX_MESSAGES_PER_SAVE: int = 5_000
    """The most messages that one save may hold."""
    MAX_NEW_MESSAGES: int = 1_000
    """The most new messages for which one context is built, or that one turn may save."""
    MAX_IDS: int = 10_000
    """The most ids of threads or messages that one call may name."""
    MAX_PARTS: int = 10_000
    """The most parts of one message."""
    MAX_MESSAGE_BYTES: int = 20 * 1024 * 1024
    """The largest content of one message, in bytes of JSON."""
    MAX_WORKING_MEMORY_BYTES: int = 1024 * 1024
    """The largest working memory, in bytes. It goes into every prompt, and each change keeps the
    text before it as a revision."""
    MAX_TITLE_LENGTH: int = 30_000
    """The longest title of a thread, in characters."""
    MAX_PER_PAGE: int = 1000
    """The largest page for callers who are not unscoped."""
    MAX_PAGE_BYTES: int = 32 * 1024 * 1024
    """The most bytes of message content in one page of messages. A page that would be larger ends
    early and holds at least one message."""
    MAX_RECALLED_MESSAGES: int = 1000
    """The most messages that one recall, context or search reads of a history, and of matches with
    their neighbours, for every caller. Larger options are lowered to it."""
    STATEMENT_TIMEOUT_API: float | None = 5.0
    """Seconds that one SQL statement of an API request may run; then the answer is 503. 0 means no
    limit, None leaves the session's `statement_timeout` as it is."""
    STATEMENT_TIMEOUT_ADMIN: float | None = 15.0
    """The same for the pages of our admin."""
    STATEMENT_TIMEOUT_TASKS: float | None = 60.0
    """The same for our Celery tasks. Management commands have no limit of ours."""
    EMBEDDER: str = "local/wordllama"
    """`provider/model` of the embedder, or the dotted path of a class or function of your own."""
    EMBED_ALSO: Sequence[str] = ()
    """More embedders for what is saved from now on, while you change from one to another."""
    EMBEDDER_TIMEOUT: float = 20.0
    """Seconds that one call to an embedder may take."""
    EMBEDDER_ATTEMPTS: int = 6
    """How often the vectors of a message are tried before they are given up until told to retry."""
    EMBEDDING_METRIC: str = "cosine"
    """How vectors are compared: `cosine`, `inner_product` or `euclidean`."""
    EMBEDDING_INDEX: Mapping[str, int | str] = field(default_factory=dict)
    """`m` and `ef_construction` of the HNSW index (pgvector's own are 16 and 64), and
    `maintenance_work_mem` for building it."""
    EXACT_SEARCH_LIMIT: int = 5_000
    """In a scope with at most so many vectors a search always compares them all; beyond, it asks
    the index where that is quicker."""
    BROKER_TIMEOUT: float = 0.05
    """Seconds that a request may spend on reaching Celery's broker. When it cannot be reached, work
    waits in the rows. Raise it where the broker is far away."""
    SEARCH_LANGUAGE: str = "english"
    """PostgreSQL's text search configuration. Run `manage.py mastra_reindex` after a change."""


def app_settings() -> AppSettings:
    """The settings as they are now: read anew when another dict is in place."""
    return _read().settings


def find_config_error() -> str:
    """Why `MASTRA_MEMORY` cannot be read at all; empty when it can."""
    given = getattr(settings, "MASTRA_MEMORY", _NOTHING)
    if not isinstance(given, Mapping):
        return f"MASTRA_MEMORY must be a dict, not {type(given).__name__}"
    if unknown := set(given) - {entry.name for entry in fields(AppSettings)}:
        return f"MASTRA_MEMORY has unknown settings: {', '.join(sorted(map(str, unknown)))}"
    dicts = {name: given.get(name, _NOTHING) for name in ("OPTIONS", "AGENTS")}
    if isinstance(agents := dicts["AGENTS"], Mapping):
        dicts |= {
            f"options of agent {name}": own for name, own in agents.items() if own is not None
        }
    wrong = [name for name, value in dicts.items() if not isinstance(value, Mapping)]
    return f"MASTRA_MEMORY has no dict as {', '.join(wrong)}" if wrong else ""


def get_embedding_models() -> list[str]:
    """The embedders of what is saved from now on, the one that recall uses first."""
    known = app_settings()
    return list(dict.fromkeys([known.EMBEDDER, *known.EMBED_ALSO]))


def get_agent_options(agent_id: str | None) -> MemoryOptions:
    """The options of an agent; of no agent, OPTIONS.

    Raises `AgentNotFound` for an id that is none of the configured agents, and
    `MemoryNotConfigured` for an agent without memory.
    """
    read = _read()
    key = agent_id if read.settings.AGENTS else None
    if key not in read.options:
        own = _own_options(read.settings, key)
        read.options[key] = MemoryOptions.parse(read.settings.OPTIONS, own)
    return read.options[key]


def _own_options(known: AppSettings, agent_id: str | None) -> Mapping[str, Any]:
    if agent_id is None:
        return {}
    if agent_id not in known.AGENTS:
        raise AgentNotFound
    own = known.AGENTS[agent_id]
    if own is None:
        raise MemoryNotConfigured
    return own


@dataclass(frozen=True, slots=True)
class _Read:
    """What a dict of settings says."""

    given: Mapping[str, Any]
    """The dict itself, held so that no other can be taken for it."""
    settings: AppSettings
    options: dict[str | None, MemoryOptions] = field(default_factory=dict)
    """By agent, as they are asked for."""


_NOTHING: dict[str, Any] = {}
_last: _Read | None = None


def _read() -> _Read:
    """The settings, parsed once for each dict: `override_settings` puts another one in place."""
    global _last
    given = getattr(settings, "MASTRA_MEMORY", _NOTHING)
    last = _last
    if last is None or last.given is not given:
        last = _last = _Read(given, AppSettings(**given))
    return last
