"""The settings of this app: the dict `MASTRA_MEMORY`, with types and defaults.

Settings are not cached at import, so `override_settings` works in tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from django.conf import settings

from mastra_memory.exceptions import AgentNotFound, MemoryNotConfigured
from mastra_memory.options import MemoryOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSettings:
    """All settings with their defaults."""

    OPTIONS: Mapping[str, Any] = field(default_factory=dict)
    """Memory options of all agents, in camelCase or snake_case: `{"lastMessages": 20}`."""
    AGENTS: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    """Options of single agents, merged into OPTIONS; None means an agent without memory.
    If the dict is empty, every `agentId` is accepted and gets OPTIONS."""
    MODEL: str = "local/extractive"
    """`provider/model` of the text model for titles and summaries; the default calls no model."""
    PROVIDERS: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """`base_url` and `api_key` by provider, unless the environment sets them. A provider that
    pydantic-ai does not know must speak the OpenAI protocol at its `base_url`."""
    PRICES: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """US dollars for a million `input` and `output` tokens of a `provider/model`, for models
    that are not in the list of public prices."""
    MODEL_TIMEOUT: float = 60.0
    """Seconds that one call to a model may take."""
    TOKEN_COUNTER: str = "mastra_memory.content.tokens.HeuristicCounter"
    """Dotted path of the class that counts tokens; see `tokens.TokenCounter`."""
    RESOURCE_FOR_REQUEST: str = "mastra_memory.api.permissions.resource_of_user"
    """Dotted path of a function that returns the resource id of a request. If it returns None,
    users with the permission `access_all_resources` can access all data, and other users none."""
    REST_FRAMEWORK: Mapping[str, Any] = field(default_factory=dict)
    """Settings of REST framework for our routes only, such as `DEFAULT_THROTTLE_CLASSES`. Without
    an entry, the project's own setting applies. `api.rest_settings` lists the names."""
    ADMIN_THREADS: str = ""
    """Dotted path of a function that takes a request and a queryset of threads, and returns the
    threads that the user may see in the admin. Empty means all."""
    REDACT: Sequence[str] = ("email", "phone", "card")
    """What is masked for users without the permission to see it: `email`, `phone`, `card`, and
    regular expressions of your own, which begin with `regex:`."""
    REOPEN_ON_MESSAGE: bool = True
    """Set the review of a resolved or waiting conversation to new when a user writes again."""
    CONTENT_SECURITY_POLICY: bool = True
    """Send a strict Content-Security-Policy with our admin pages. Use False to send your own."""
    MAX_BODY_BYTES: int = 20 * 1024 * 1024
    """The maximum size of a request body, in bytes."""
    MAX_BODY_VALUES: int = 1_000_000
    """The maximum number of names and values in the JSON of a request body. Python objects take up
    to 100 times the bytes of the JSON text they are parsed from, so `MAX_BODY_BYTES` alone does not
    bound memory."""
    MAX_MESSAGES_PER_SAVE: int = 5_000
    """The maximum number of messages in one save."""
    MAX_NEW_MESSAGES: int = 1_000
    """The maximum number of new messages in one context or one turn."""
    MAX_IDS: int = 10_000
    """The maximum number of ids of threads or messages in one call."""
    MAX_PARTS: int = 10_000
    """The maximum number of parts of a message."""
    MAX_MESSAGE_BYTES: int = 20 * 1024 * 1024
    """The maximum size of the content of a message, in bytes of JSON."""
    MAX_WORKING_MEMORY_BYTES: int = 1024 * 1024
    """The maximum size of a working memory, in bytes. It is part of every prompt, and each change
    keeps the old text as a revision."""
    MAX_TITLE_LENGTH: int = 30_000
    """The maximum length of a thread's title, in characters."""
    MAX_PER_PAGE: int = 1000
    """The maximum page size for callers who are limited to a resource."""
    MAX_PAGE_BYTES: int = 32 * 1024 * 1024
    """The maximum size of one page of messages, in bytes of content. A larger page ends early, but
    has at least one message."""
    MAX_RECALLED_MESSAGES: int = 1000
    """The maximum number of messages that a recall, context or search reads from the history. The
    same limit applies to matches with their neighbours. Larger options are reduced to it."""
    STATEMENT_TIMEOUT_API: float | None = 5.0
    """Seconds that one SQL statement of an API request may run; then the answer is 503. 0 means no
    limit, None leaves the session's `statement_timeout` as it is."""
    STATEMENT_TIMEOUT_ADMIN: float | None = 15.0
    """The same for the pages of our admin."""
    STATEMENT_TIMEOUT_TASKS: float | None = 60.0
    """The same for our Celery tasks. Management commands have no limit."""
    EMBEDDER: str = "local/wordllama"
    """`provider/model` of the embedder, or the dotted path of a class or function of your own."""
    EMBED_ALSO: Sequence[str] = ()
    """More embedders for new messages, while you change from one embedder to another."""
    EMBEDDER_TIMEOUT: float = 20.0
    """Seconds that one call to an embedder may take."""
    EMBEDDER_ATTEMPTS: int = 6
    """The maximum number of attempts to embed a message. `mastra_embed --retry` starts again."""
    EMBEDDING_METRIC: str = "cosine"
    """How vectors are compared: `cosine`, `inner_product` or `euclidean`."""
    EMBEDDING_INDEX: Mapping[str, int | str] = field(default_factory=dict)
    """`m` and `ef_construction` of the HNSW index (pgvector's defaults are 16 and 64), and
    `maintenance_work_mem` for building it."""
    EXACT_SEARCH_LIMIT: int = 5_000
    """A search compares all vectors if its scope has at most this many. In larger scopes it uses
    the index if that is faster."""
    RETENTION_DAYS: float | None = None
    """Threads without activity for this many days are deleted by `mastra_prune` and by the task
    `mastra_memory.tasks.prune`. None keeps them."""
    BROKER_TIMEOUT: float = 0.04
    """Seconds that a request may spend on connecting to Celery's broker. If it cannot connect, the
    work stays queued in the database. Raise it if the broker is far away."""
    SEARCH_LANGUAGE: str = "english"
    """PostgreSQL's text search configuration. Run `manage.py mastra_reindex` after a change."""
    SEARCH_TIME_LANGUAGES: Sequence[str] = ("en", "de", "fr", "es")
    """Languages in which expressions of time such as `last week` are recognized in queries: `de`,
    `en`, `es`, `fr`, `it`, `nl`, `pt`. Empty for none."""


def app_settings() -> AppSettings:
    """Return the current settings."""
    return _get_parsed_settings().settings


def find_config_error() -> str:
    """Return why `MASTRA_MEMORY` cannot be read, or an empty string if it can."""
    given = getattr(settings, "MASTRA_MEMORY", _NO_SETTINGS)
    if not isinstance(given, Mapping):
        return f"MASTRA_MEMORY must be a dict, not {type(given).__name__}"
    if unknown := set(given) - {entry.name for entry in fields(AppSettings)}:
        return f"MASTRA_MEMORY has unknown settings: {', '.join(sorted(map(str, unknown)))}"
    names = ("OPTIONS", "AGENTS", "REST_FRAMEWORK")
    dicts = {name: given.get(name, _NO_SETTINGS) for name in names}
    if isinstance(agents := dicts["AGENTS"], Mapping):
        dicts |= {
            f"options of agent {name}": own for name, own in agents.items() if own is not None
        }
    wrong = [name for name, value in dicts.items() if not isinstance(value, Mapping)]
    return f"MASTRA_MEMORY: not a dict: {', '.join(wrong)}" if wrong else ""


def get_embedding_models() -> list[str]:
    """Return the embedders of new messages. Recall uses the first one."""
    current = app_settings()
    return list(dict.fromkeys([current.EMBEDDER, *current.EMBED_ALSO]))


def get_agent_options(agent_id: str | None) -> MemoryOptions:
    """Return the options of an agent, or OPTIONS for None.

    Raises:
        AgentNotFound: Agents are configured, but not this one.
        MemoryNotConfigured: The agent has no memory.
    """
    parsed = _get_parsed_settings()
    key = agent_id if parsed.settings.AGENTS else None
    if key not in parsed.options:
        own = _get_own_options(parsed.settings, key)
        parsed.options[key] = MemoryOptions.parse(parsed.settings.OPTIONS, own)
    return parsed.options[key]


def _get_own_options(app: AppSettings, agent_id: str | None) -> Mapping[str, Any]:
    if agent_id is None:
        return {}
    if agent_id not in app.AGENTS:
        raise AgentNotFound
    own = app.AGENTS[agent_id]
    if own is None:
        raise MemoryNotConfigured
    return own


@dataclass(frozen=True, slots=True)
class _ParsedSettings:
    """The parsed settings of one dict."""

    given: Mapping[str, Any]
    """The dict. The reference keeps it in memory, so that `is` cannot match a newer dict."""
    settings: AppSettings
    options: dict[str | None, MemoryOptions] = field(default_factory=dict)
    """Options by agent, parsed when they are first needed."""


_NO_SETTINGS: dict[str, Any] = {}
_last_parsed: _ParsedSettings | None = None


def _get_parsed_settings() -> _ParsedSettings:
    """Return the settings, parsed once for each dict; `override_settings` sets another dict."""
    global _last_parsed
    given = getattr(settings, "MASTRA_MEMORY", _NO_SETTINGS)
    last = _last_parsed
    if last is None or last.given is not given:
        last = _last_parsed = _ParsedSettings(given, AppSettings(**given))
    return last
