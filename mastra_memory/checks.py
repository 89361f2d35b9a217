"""System checks of the settings, the database and the stored vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from typing import Any

from django.core import checks
from django.db import DatabaseError, connections
from django.utils.module_loading import import_string

from mastra_memory import conf
from mastra_memory.content import redaction
from mastra_memory.db import isolation, routing, sql, text_search
from mastra_memory.embedding import embedder, stats
from mastra_memory.embedding.vector_index import TABLE, VectorIndex
from mastra_memory.exceptions import (
    AgentNotFound,
    InvalidInput,
    MastraMemoryError,
    MemoryNotConfigured,
)
from mastra_memory.llm import text_models
from mastra_memory.search.times import words as time_words

MIN_PGVECTOR_VERSION = (0, 8)
"""The first version with iterative index scans. Without them, a scan of the index could find too
few messages of a scope."""
PROBE_TEXT = "probe"


@checks.register("mastra_memory")
def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Report unknown settings and invalid options in `MASTRA_MEMORY`."""
    if error := conf.find_config_error():
        return [checks.Error(error, id="mastra_memory.E001")]
    return [
        checks.Error(f"MASTRA_MEMORY options of {name}: {error}", id="mastra_memory.E002")
        for name, error in _find_option_errors()
    ]


@checks.register("mastra_memory")
def check_ignored_options(**_: Any) -> list[checks.CheckMessage]:
    """Report options of Mastra that are set and have no effect."""
    if conf.find_config_error():
        return []
    warnings: list[checks.CheckMessage] = []
    for agent_id in (None, *conf.app_settings().AGENTS):
        try:
            observational = conf.get_agent_options(agent_id).observational_memory
        except (AgentNotFound, MemoryNotConfigured, InvalidInput):
            continue
        ignored = observational.ignored if observational else []
        if ignored:
            names = ", ".join(f"observationalMemory.{name}" for name in ignored)
            warnings.append(
                checks.Warning(
                    f"MASTRA_MEMORY options of {_name_options(agent_id)} without effect: {names}.",
                    hint="Remove them. docs/settings.md says why they have no effect.",
                    id="mastra_memory.W013",
                )
            )
    return warnings


def _name_options(agent_id: str | None) -> str:
    return f"agent {agent_id}" if agent_id else "OPTIONS"


def _find_option_errors() -> list[tuple[str, str]]:
    errors = []
    for agent_id in (None, *conf.app_settings().AGENTS):
        try:
            conf.get_agent_options(agent_id)
        except (AgentNotFound, MemoryNotConfigured):
            continue
        except InvalidInput as error:
            errors.append((_name_options(agent_id), str(error)))
    return errors


@checks.register("mastra_memory")
def check_statement_timeouts(**_: Any) -> list[checks.CheckMessage]:
    """Report statement timeouts that are not numbers of seconds."""
    if conf.find_config_error():
        return []
    app_settings = conf.app_settings()
    names = ("STATEMENT_TIMEOUT_API", "STATEMENT_TIMEOUT_ADMIN", "STATEMENT_TIMEOUT_TASKS")
    return [
        checks.Error(
            f"MASTRA_MEMORY['{name}'] must be a number of seconds from 0 to 2,147,483, or None.",
            id="mastra_memory.E012",
        )
        for name in names
        if not _is_duration(getattr(app_settings, name))
    ]


@checks.register("mastra_memory")
def check_limits(**_: Any) -> list[checks.CheckMessage]:
    """Report limits (`MAX_...`) that are not positive whole numbers."""
    if conf.find_config_error():
        return []
    limits = {
        setting.name: getattr(conf.app_settings(), setting.name)
        for setting in fields(conf.AppSettings)
        if setting.name.startswith("MAX_")
    }
    return [
        checks.Error(
            f"MASTRA_MEMORY['{name}'] must be a whole number of at least 1.",
            id="mastra_memory.E020",
        )
        for name, limit in limits.items()
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1
    ]


@checks.register("mastra_memory")
def check_retention(**_: Any) -> list[checks.CheckMessage]:
    """Report a `RETENTION_DAYS` that is not a positive number. It decides what is deleted."""
    if conf.find_config_error():
        return []
    days = conf.app_settings().RETENTION_DAYS
    is_number = isinstance(days, int | float) and not isinstance(days, bool)
    if days is None or (is_number and 0 < days < 100_000):
        return []
    message = "MASTRA_MEMORY['RETENTION_DAYS'] must be a number of days above 0, or None."
    return [checks.Error(message, id="mastra_memory.E021")]


@checks.register("mastra_memory")
def check_types(**_: Any) -> list[checks.CheckMessage]:
    """Report settings of the wrong type, such as a text where a list is expected."""
    if conf.find_config_error():
        return []
    current, defaults = conf.app_settings(), conf.AppSettings()
    return [
        checks.Error(
            f"MASTRA_MEMORY['{setting.name}'] must be {expected}, not {value!r}.",
            id="mastra_memory.E022",
        )
        for setting in fields(conf.AppSettings)
        if (value := getattr(current, setting.name)) is not None
        and (expected := _find_wrong_type(value, getattr(defaults, setting.name)))
    ]


def _find_wrong_type(value: Any, default: Any) -> str:
    """Return the expected type if `value` has another one than the default, else nothing."""
    if default is None:
        return ""
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "True or False"
    if isinstance(default, str):
        return "" if isinstance(value, str) else "a text"
    if isinstance(default, int | float):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if is_number else "a number"
    if isinstance(default, Mapping):
        return "" if isinstance(value, Mapping) else "a dict"
    return "" if isinstance(value, list | tuple | set | frozenset) else "a list"


@checks.register("mastra_memory")
def check_paths(**_: Any) -> list[checks.CheckMessage]:
    """Report dotted paths that cannot be imported."""
    if conf.find_config_error():
        return []
    current = conf.app_settings()
    paths = {
        name: getattr(current, name)
        for name in ("TOKEN_COUNTER", "RESOURCE_FOR_REQUEST", "ADMIN_THREADS")
    }
    paths |= {f"REST_FRAMEWORK {name}": value for name, value in current.REST_FRAMEWORK.items()}
    errors: list[checks.CheckMessage] = []
    for name, value in paths.items():
        for entry in value if isinstance(value, list | tuple) else [value]:
            if isinstance(entry, str) and entry and (reason := _find_import_error(entry)):
                text = f"MASTRA_MEMORY: {name} cannot be imported: {reason}"
                errors.append(checks.Error(text, id="mastra_memory.E023"))
    return errors


def _find_import_error(path: str) -> str:
    try:
        import_string(path)
    except ImportError as error:
        return str(error)
    return ""


@checks.register("mastra_memory")
def check_redaction(**_: Any) -> list[checks.CheckMessage]:
    """Report entries of `REDACT` that mask nothing."""
    if conf.find_config_error() or isinstance(entries := conf.app_settings().REDACT, str):
        return []
    errors: list[checks.CheckMessage] = []
    for entry in entries:
        try:
            redaction.compile_entry(entry)
        except InvalidInput as error:
            errors.append(checks.Error(str(error), id="mastra_memory.E024"))
    return errors


@checks.register("mastra_memory")
def check_models(**_: Any) -> list[checks.CheckMessage]:
    """Report unknown models and embedders, and those whose library is not installed."""
    if conf.find_config_error():
        return []
    current = conf.app_settings()
    embedders = [name for name in (current.EMBEDDER, *current.EMBED_ALSO) if isinstance(name, str)]
    problems = [("EMBEDDER", _find_embedder_problem(name)) for name in embedders]
    if isinstance(current.MODEL, str):
        problems.append(("MODEL", _find_model_problem(current.MODEL)))
    return [
        checks.Error(f"MASTRA_MEMORY: {name}: {problem}", id="mastra_memory.E025")
        for name, problem in problems
        if problem
    ]


def _find_model_problem(name: str) -> str:
    try:
        text_models.check_name(name)
    except InvalidInput as error:
        return str(error)
    return "" if name.startswith("local/") else _find_missing_library("pydantic_ai", "models")


def _find_embedder_problem(name: str) -> str:
    provider, slash, _model = name.partition("/")
    if not slash:
        return _find_import_error(name)
    if provider == "local":
        known = "local/wordllama"
        return "" if name == known else f"Unknown embedder {name}. Local embedders: {known}"
    modules = {"fastembed": "fastembed", "sentence-transformers": "sentence_transformers"}
    if provider in modules:
        return _find_missing_library(modules[provider], provider)
    return _find_missing_library("pydantic_ai", "models")


def _find_missing_library(module: str, extra: str) -> str:
    if find_spec(module) is not None:
        return ""
    return f"{module} is not installed. Run: pip install 'django-mastra-memory[{extra}]'"


@checks.register("mastra_memory")
def check_time_languages(**_: Any) -> list[checks.CheckMessage]:
    """Report languages of `SEARCH_TIME_LANGUAGES` that are not supported."""
    if conf.find_config_error():
        return []
    languages = conf.app_settings().SEARCH_TIME_LANGUAGES
    known = ", ".join(sorted(time_words.LANGUAGES))
    if isinstance(languages, str) or any(name not in [*time_words.LANGUAGES] for name in languages):
        return [
            checks.Error(
                f"MASTRA_MEMORY['SEARCH_TIME_LANGUAGES'] must be a list of: {known}.",
                id="mastra_memory.E027",
            )
        ]
    return []


def _is_duration(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (is_number and 0 <= value <= 2_147_483)


@checks.register("mastra_memory")
def check_metric(**_: Any) -> list[checks.CheckMessage]:
    """Report a metric that pgvector does not have."""
    if conf.find_config_error():
        return []
    try:
        VectorIndex.for_model("", 1)
    except InvalidInput as error:
        return [checks.Error(str(error), id="mastra_memory.E003")]
    return []


@checks.register("mastra_memory")
def check_database(**_: Any) -> list[checks.CheckMessage]:
    """Report a database other than PostgreSQL, where `migrate` would fail in the middle."""
    alias = routing.get_alias()
    vendor = connections[alias].vendor
    if vendor == "postgresql":
        return []
    return [
        checks.Error(
            f"mastra_memory needs PostgreSQL with pgvector; the database {alias} is {vendor}.",
            hint="Set a PostgreSQL database in DATABASES, or route mastra_memory to one.",
            id="mastra_memory.E011",
        )
    ]


checks.register("mastra_memory")(isolation.check_isolation_level)
checks.register(checks.Tags.database)(isolation.check_default_isolation_level)


@checks.register(checks.Tags.database)
def check_vectors(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Report a missing or old pgvector, vectors of another length, and a missing index.

    This runs with `check --database default` and before `migrate`, not when a web server starts.
    """
    if conf.find_config_error() or routing.get_alias() not in (databases or ()):
        return []
    try:
        return _check_version() or [*_check_language(), *_check_lengths(), *_check_index()]
    except DatabaseError:
        return []  # The database does not exist or is not migrated yet.


def _check_version() -> list[checks.CheckMessage]:
    found = sql.fetch_one(
        """SELECT e.extversion, a.default_version,
            (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user)
        FROM (SELECT 'vector' AS name) AS wanted
        LEFT JOIN pg_extension e ON e.extname = wanted.name
        LEFT JOIN pg_available_extensions a ON a.name = wanted.name"""
    )
    return check_extension_version(*found) if found else []


def _check_language() -> list[checks.CheckMessage]:
    language = conf.app_settings().SEARCH_LANGUAGE
    if text_search.has_configuration(language):
        return []
    return [
        checks.Error(
            f"SEARCH_LANGUAGE: PostgreSQL has no text search configuration named {language}.",
            hint="psql lists them with: \\dF",
            id="mastra_memory.E026",
        )
    ]


def check_extension_version(
    created: str | None, available: str | None, may_create: bool
) -> list[checks.CheckMessage]:
    """Report what is wrong with pgvector.

    Args:
        created: Its version in this database, or None.
        available: Its version on the server, or None.
        may_create: Whether the database user may create extensions.
    """
    version = created or available
    if version is None:
        return [
            checks.Error(
                "The extension vector (pgvector) is not available on the PostgreSQL server.",
                hint="Install it on the server, 0.8 or newer; packages are called "
                "postgresql-NN-pgvector, and hosted databases list it among their extensions.",
                id="mastra_memory.E009",
            )
        ]
    if tuple(map(int, version.split(".")[:2])) < MIN_PGVECTOR_VERSION:
        return [
            checks.Error(
                f"The PostgreSQL extension vector has version {version}, 0.8 or newer is needed.",
                hint="Update pgvector on the server, then run: ALTER EXTENSION vector UPDATE;",
                id="mastra_memory.E004",
            )
        ]
    if created is None and not may_create:
        return [
            checks.Warning(
                "The PostgreSQL extension vector does not exist in this database. On most servers "
                "only a superuser may create it, and this database user is not a superuser.",
                hint="Before `migrate`, run this as a superuser: CREATE EXTENSION vector;",
                id="mastra_memory.W010",
            )
        ]
    return []


def _check_lengths() -> list[checks.CheckMessage]:
    """Report stored vectors of another length than those of the embedder."""
    stored = stats.list_dimensions()
    model = conf.app_settings().EMBEDDER
    if not stored:
        return []
    try:
        used = embedder.get_embedder(model)
        made = embedder.embed_query(model, [PROBE_TEXT]).dimensions if used.is_local else None
    except MastraMemoryError as error:
        return [checks.Error(f"EMBEDDER: {error}", id="mastra_memory.E005")]
    if model not in stored:
        return [_warn_about_missing_vectors(model, made, stored)]
    if made is None and len(stored[model]) == 1:
        return []
    wrong = [length for length in stored[model] if length != made]
    if not wrong:
        return []
    return [
        checks.Error(
            f"{model} makes vectors of {made or stored[model][-1]} dimensions, but some stored "
            f"vectors have {wrong[0]} dimensions. A search does not find these.",
            hint="Run `manage.py mastra_embed --again` to embed all messages again.",
            id="mastra_memory.E006",
        )
    ]


def _warn_about_missing_vectors(
    model: str, made: int | None, stored: dict[str, list[int]]
) -> checks.CheckMessage:
    others = ", ".join(f"{name} ({lengths[-1]} dimensions)" for name, lengths in stored.items())
    own = f"{model} ({made} dimensions)" if made else model
    return checks.Warning(
        f"Recall by meaning uses {own}, but no vectors of it are stored yet. Stored are vectors of "
        f"{others}.",
        hint="Run `manage.py mastra_embed` to create them.",
        id="mastra_memory.W007",
    )


def _check_index() -> list[checks.CheckMessage]:
    """Report many stored vectors without an index."""
    app_settings = conf.app_settings()
    warnings: list[checks.CheckMessage] = []
    for dimensions in stats.list_dimensions().get(app_settings.EMBEDDER, []):
        index = VectorIndex.for_model(app_settings.EMBEDDER, dimensions)
        if index.column_type is None or index.is_ready():
            continue
        counted = sql.fetch_one(
            f"SELECT count(*) FROM (SELECT 1 FROM {TABLE} WHERE {index.condition} LIMIT %s) e",
            [app_settings.EXACT_SEARCH_LIMIT + 1],
        )
        if counted and counted[0] > app_settings.EXACT_SEARCH_LIMIT:
            warnings.append(
                checks.Warning(
                    f"More than {app_settings.EXACT_SEARCH_LIMIT} vectors of "
                    f"{app_settings.EMBEDDER} are stored "
                    "without an index; searches in large scopes compare them all.",
                    hint="Run `manage.py mastra_embed`.",
                    id="mastra_memory.W008",
                )
            )
    return warnings
