"""A large export on a real server with a real worker: its progress, its owner, a killed worker."""

import os
import re
import signal
import subprocess
import sys
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest
from django.contrib.auth.models import User

from mastra_memory.db import sql
from mastra_memory.models import ExportJob, Thread
from tests.admin.conftest import make_staff
from tests.admin.pages import LIST
from tests.support import live_server, servers
from tests.support.factories import fill, make_thread
from tests.support.waiting import wait_until
from tests.test_worker import worker

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
THREADS, MESSAGES = 2_000, 5


class Browser:
    """A user who signed in with a password and sends forms with their CSRF token."""

    def __init__(self, port: int, user: User) -> None:
        user.set_password("correct horse")
        user.save()
        self.base = f"http://127.0.0.1:{port}"
        self.cookies = CookieJar()
        self.opener: OpenerDirector = build_opener(HTTPCookieProcessor(self.cookies))
        self.get("/admin/login/")
        self.post("/admin/login/", username=user.username, password="correct horse")

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        return self._open(Request(self.base + path))

    def post(self, path: str, **fields: Any) -> tuple[int, str]:
        """Send a form and follow where it leads."""
        token = next(cookie.value for cookie in self.cookies if cookie.name == "csrftoken")
        body = urlencode({**fields, "csrfmiddlewaretoken": token}, doseq=True).encode()
        return self._open(Request(self.base + path, body))

    def _open(self, request: Request) -> tuple[int, str]:
        try:
            with self.opener.open(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refused:
            return refused.code, refused.read().decode()


def many_threads() -> None:
    """Enough that an export has a middle: long texts, of which much is masked."""
    first = make_thread("anna", "big", title="Big")
    fill(first, MESSAGES, text="write to anna@example.com or call +48 601 234 567. " * 40)
    sql.execute(
        """INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, title_error,
            metadata, created_at, updated_at)
        SELECT 'big-' || n, resource_id, 'Big ' || n, title_source, title_error, metadata,
            created_at, updated_at
        FROM mastra_memory_thread, generate_series(1, %s) AS n WHERE id = 'big'""",
        [THREADS - 1],
    )
    sql.execute(
        """INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal,
            content, text, search, created_at)
        SELECT m.id || '-' || n, 'big-' || n, m.resource_id, m.role, m.type, m.signal, m.content,
            m.text, m.search, m.created_at
        FROM mastra_memory_message m, generate_series(1, %s) AS n WHERE m.thread_id = 'big'""",
        [THREADS - 1],
    )


def test_export__survives_its_worker_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    many_threads()
    env = live_server.environment(tmp_path)
    send = "from mastra_memory.tasks import catch_up; catch_up.delay()"
    catch_up = [sys.executable, "manage.py", "shell", "-v", "0", "-c", send]
    rights = ("view_thread", "export_thread")
    ana, ben = make_staff("ana", *rights), make_staff("ben", *rights)
    with live_server.real_server(tmp_path) as server:
        owner, other = Browser(server.port, ana), Browser(server.port, ben)
        with worker(env) as first:
            fields = {"action": "export", "select_across": "1", "chosen": "markdown"}
            status, page = owner.post(f"{LIST}?all=1", _selected_action="big", **fields)
            assert status == 200 and "The export has started" in page
            job = ExportJob.objects.get()
            wait_until(lambda: halfway(owner))
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
        job.refresh_from_db()
        assert job.state == "running" and 0 < job.done < THREADS
        assert owner.get(f"{LIST}exports/{job.pk}/")[0] == 404, "there is no file yet"
        with worker(env):
            subprocess.run(catch_up, env=env, cwd=servers.ROOT, check=True, timeout=60)
            wait_until(lambda: "Download" in owner.get(f"{LIST}exports/?part=1")[1])
        status, text = owner.get(f"{LIST}exports/{job.pk}/")
        assert status == 200
        assert text.count("\n# Big") + text.startswith("# Big") == Thread.objects.count() == THREADS
        assert text.count("\n## ") == THREADS * MESSAGES
        assert "anna@example.com" not in text and "[email]" in text
        assert other.get(f"{LIST}exports/{job.pk}/")[0] == 404
        assert "Download" not in other.get(f"{LIST}exports/")[1]


def halfway(owner: Browser) -> bool:
    """Whether the page shows that some of it is done, and not yet all."""
    found = re.search(r'<progress max="\d+" value="(\d+)"', owner.get(f"{LIST}exports/?part=1")[1])
    return found is not None and 0 < int(found[1]) < THREADS
