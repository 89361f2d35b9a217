"""Running `manage.py` as a user does: a process of its own, in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# `project.wsgi` sets STATEMENT_TIMEOUT; another test of this process may have imported it.
OURS = (
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "DJANGO_ENV",
    "DEBUG",
    "SECRET_KEY",
    "HOST",
    "PORT",
    "STATEMENT_TIMEOUT",
)


def environment(var_dir: Path, **variables: str) -> dict[str, str]:
    """Give the environment of a stranger's shell, with these variables added."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    kept |= {"MASTRA_VAR_DIR": str(var_dir), "PYTHONWARNINGS": "error", **variables}
    return kept | {"DJANGO_SETTINGS_MODULE": "project.settings"}


def manage(var_dir: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment(var_dir, **variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
