"""System checks of the settings: types, paths, limits and options."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.core import checks
from django.utils.module_loading import import_string

from mastra_memory import conf
from mastra_memory.content import redaction
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.exceptions import AgentNotFound, InvalidInput, MemoryNotConfigured
from mastra_memory.search.times import words as time_words


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
    """Report settings of the wrong type, such as a string where a list is expected."""
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
    """Return the expected type if `value` is not of the default's type, else an empty string."""
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
            if isinstance(entry, str) and entry and (reason := find_import_error(entry)):
                text = f"MASTRA_MEMORY: {name} cannot be imported: {reason}"
                errors.append(checks.Error(text, id="mastra_memory.E023"))
    return errors


def find_import_error(path: str) -> str:
    """Return why a dotted path cannot be imported, or an empty string if it can."""
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
