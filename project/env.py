"""Reading settings from environment variables."""

import os
import re
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

TRUE_VALUES = {"1", "true", "yes", "on"}
FALSE_VALUES = {"0", "false", "no", "off", ""}
DATABASE_URL_FORMAT = "postgresql://user:password@host:5432/name"


def read_bool(name: str, default: bool) -> bool:
    """Read a switch such as `1`, `true`, `0` or `off`; other values raise an error."""
    value = os.environ.get(name, "").strip().lower()
    if name not in os.environ:
        return default
    if value in TRUE_VALUES or value in FALSE_VALUES:
        return value in TRUE_VALUES
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {os.environ[name]!r}.")


def read_int(name: str, default: int) -> int:
    """Read a whole number."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        return int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None


def read_seconds(name: str, default: float) -> float:
    """Read a duration in seconds, fractions allowed."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        return float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {value!r}.") from None


def read_rate(name: str, default: str) -> str | None:
    """Read a rate for REST framework's throttles, such as `100/min`. None for `0`: no limit."""
    value = os.environ.get(name, "").strip() or default
    if value == "0":
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,6}/(s|sec|m|min|h|hour|d|day)", value):
        raise ImproperlyConfigured(f"{name} must look like 100/min, or be 0, not {value!r}.")
    return value


def read_list(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Read a list separated by commas."""
    if name not in os.environ:
        return list(default)
    return [word.strip() for word in os.environ[name].split(",") if word.strip()]


def is_production() -> bool:
    """Return True if DJANGO_ENV is `production`, or if it is not set and DEBUG is off."""
    named = os.environ.get("DJANGO_ENV")
    if named is None:
        return not read_bool("DEBUG", True)
    if (name := named.strip().lower()) not in ("production", "development", ""):
        raise ImproperlyConfigured(f"DJANGO_ENV must be production or development, not {named!r}.")
    return name == "production"


def read_database_url(engine: str) -> dict[str, Any] | None:
    """Read DATABASE_URL; return None if it is not set. Errors do not show its password."""
    url = os.environ.get("DATABASE_URL", "").strip()
    if not url:
        return None
    if url.partition("://")[0] not in ("postgresql", "postgres"):
        raise ImproperlyConfigured(f"DATABASE_URL must look like {DATABASE_URL_FORMAT}.")
    try:
        database: dict[str, Any] = dict(dj_database_url.parse(url, engine=engine))
    except ValueError:
        raise ImproperlyConfigured(
            f"DATABASE_URL cannot be read. It must look like {DATABASE_URL_FORMAT}; "
            "percent-encode characters such as @ / : # % in the password."
        ) from None
    if not database["NAME"]:
        raise ImproperlyConfigured(
            f"DATABASE_URL has no database name. It must look like {DATABASE_URL_FORMAT}."
        )
    return database


def read_secret_key(var_dir: Path, *, production: bool) -> str:
    """Return SECRET_KEY. In development, create one on first use and store it in `var_dir`."""
    if key := os.environ.get("SECRET_KEY"):
        return key
    if production:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set. In production it must be long, random and always the same."
        )
    path = var_dir / "secret_key"
    try:
        var_dir.mkdir(parents=True, exist_ok=True)
        return _read_or_create_key(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"Cannot keep a secret key in {path}: {error.strerror}. "
            "Set SECRET_KEY, or MASTRA_VAR_DIR to a folder that can be written."
        ) from None


def _read_or_create_key(path: Path) -> str:
    """Read the key file, or write it in one step so that parallel starts agree on one key."""
    if path.exists():
        return path.read_text()
    fresh = path.with_name(f"secret_key.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(get_random_secret_key())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass  # another process was first, and its key is used
    finally:
        fresh.unlink()
    return path.read_text()
