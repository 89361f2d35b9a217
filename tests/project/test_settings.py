"""Settings as the environment makes them, seen from outside."""

import json
from pathlib import Path

import pytest

from tests.project.commands import manage

SHOW = """
import json
from django.conf import settings
names = ["DEBUG", "ALLOWED_HOSTS", "SECRET_KEY", "CELERY_BROKER_URL", "PRODUCTION"]
print(json.dumps({name: getattr(settings, name) for name in names}
    | {"host": settings.DATABASES["default"]["HOST"]}))
"""
LONG_KEY = "x1" * 20 + "abcdefghijklmnop"


def show(var_dir: Path, **variables: str) -> dict[str, object]:
    done = manage(var_dir, "shell", "-v", "0", "-c", SHOW, **variables)
    assert done.returncode == 0, done.stderr
    values: dict[str, object] = json.loads(done.stdout)
    return values


@pytest.mark.parametrize("switch", [{"DJANGO_ENV": "production"}, {"DEBUG": "0"}])
def test_production__deployment_check_has_nothing_to_say(
    tmp_path: Path, switch: dict[str, str]
) -> None:
    done = manage(
        tmp_path,
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        SECRET_KEY=LONG_KEY,
        ALLOWED_HOSTS="memory.example.com",
        **switch,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues (0 silenced)" in done.stdout


def test_production__a_missing_secret_key_is_one_clear_error(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", DJANGO_ENV="production")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("Error: SECRET_KEY is not set.")
    assert not (tmp_path / "secret_key").exists()


def test_development__the_key_is_made_once_and_private(tmp_path: Path) -> None:
    first, second = show(tmp_path), show(tmp_path)
    assert first == second
    assert len(str(first["SECRET_KEY"])) >= 50
    assert (tmp_path / "secret_key").stat().st_mode & 0o077 == 0
    assert (first["DEBUG"], first["PRODUCTION"]) == (True, False)


def test_development__uncreatable_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = manage(tmp_path / "file" / "var", "check")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "Cannot keep a secret key" in done.stderr


def test_settings__variables_are_read(tmp_path: Path) -> None:
    shown = show(
        tmp_path,
        DJANGO_ENV="production",
        SECRET_KEY=LONG_KEY,
        ALLOWED_HOSTS="a.example, b.example",
        CELERY_BROKER_URL="redis://queue/0",
        DATABASE_URL="postgresql://me:secret@db/memory",
    )
    assert shown == {
        "DEBUG": False,
        "PRODUCTION": True,
        "ALLOWED_HOSTS": ["a.example", "b.example"],
        "SECRET_KEY": LONG_KEY,
        "CELERY_BROKER_URL": "redis://queue/0",
        "host": "db",
    }


def test_settings__an_unreadable_switch_is_an_error_not_a_guess(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", DEBUG="maybe")
    assert done.stderr.strip() == "Error: DEBUG must be 1 or 0, not 'maybe'."


def test_check__starts_no_database(tmp_path: Path) -> None:
    assert manage(tmp_path, "check").returncode == 0
    assert manage(tmp_path, "help").returncode == 0
    assert not (tmp_path / "postgres").exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DJANGO_ENV", "prod", "DJANGO_ENV must be production or development, not 'prod'."),
        ("DATABASE_URL", "nonsense", "DATABASE_URL must look like postgresql://"),
        ("DATABASE_URL", "mysql://me:secret@db/memory", "DATABASE_URL must look like postgresql:"),
        ("DATABASE_URL", "sqlite:///memory.db", "DATABASE_URL must look like postgresql://"),
        ("DATABASE_URL", "postgresql://me:secret@db:port/memory", "DATABASE_URL cannot be read."),
        ("DATABASE_URL", "postgresql://me:secret@[db/memory", "DATABASE_URL cannot be read."),
        ("DATABASE_URL", "postgresql://me:secret@db/", "DATABASE_URL has no database name."),
        ("API_THROTTLE_RATE", "fast", "API_THROTTLE_RATE must look like 100/min, or be 0"),
    ],
)
def test_settings__a_misspelt_variable_is_one_clear_error(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    done = manage(tmp_path, "check", **{name: value})
    assert done.returncode != 0
    assert done.stderr.startswith(f"Error: {message}") and "\n" not in done.stderr.strip()
    assert "secret" not in done.stderr
