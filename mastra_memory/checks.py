"""System checks of the settings, the database and the stored vectors."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from django.core import checks
from django.db import DatabaseError, connections

from mastra_memory import conf
from mastra_memory.db import isolation, routing, sql, text_search
from mastra_memory.embedding import embedder, stats
from mastra_memory.embedding.vector_index import TABLE, VectorIndex
from mastra_memory.exceptions import (
    InvalidInput,
    MastraMemoryError,
)
from mastra_memory.llm import text_models
from mastra_memory.setting_checks import find_import_error

MIN_PGVECTOR_VERSION = (0, 8)
"""The first version with iterative index scans. Without them, a scan of the index could find too
few messages of a scope."""
PROBE_TEXT = "probe"


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
        return find_import_error(name)
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
