"""Run the smoke tests in the host projects that need no packages but those of the tests.

`make hosts` runs them in environments of their own, with the built wheel.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

HOSTS = Path(__file__).parent
ROOT = HOSTS.parent.parent


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("host", "zone"),
    [
        ("plain", ""),
        ("accounts", "Asia/Kolkata"),
        ("accounts", "Europe/Berlin"),
        ("two_databases", ""),
    ],
)
def test_smoke__passes_in_the_host(host: str, zone: str, tmp_path: Path) -> None:
    settings = connection.settings_dict
    completed = subprocess.run(
        [sys.executable, "manage.py", "test", "smoke", "--noinput"],
        cwd=HOSTS / host,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings",
            "PYTHONPATH": f"{ROOT}:{HOSTS}",
            "PGHOST": settings["HOST"],
            "PGPORT": str(settings["PORT"] or ""),
            "PGUSER": settings["USER"],
            "PGPASSWORD": settings["PASSWORD"],
            "HOST_DATABASE": f"{settings['NAME']}_{host}",
            "HOST_FOLDER": str(tmp_path),
            "HOST_TIME_ZONE": zone or "Europe/Berlin",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-4_000:]
