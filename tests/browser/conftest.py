"""A real browser on a real server: Debian's Chromium, driven by Playwright."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from mastra_memory.memory import Memory
from mastra_memory.models import Criterion, Thread

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RIGHTS = {
    "reviewer": ["view_thread", "review_thread", "view_workingmemory"],
    "viewer": ["view_thread"],
    "nobody": [],
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs a browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for all tests here; its event loop must end before others want one."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright runs a loop in this thread; Django's check would take us for async.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@dataclass
class Person:
    """A signed-in user with their own browser context."""

    user: User
    page: Page
    base: str
    errors: list[str] = field(default_factory=list)
    """What the browser complained about: scripts that failed, content that was refused."""

    def open(self, path: str) -> Any:
        """Open an address; the answer."""
        return self.page.goto(self.base + path)

    def open_thread(self, thread_id: str, query: str = "") -> None:
        """Open a conversation."""
        self.open(f"/admin/mastra_memory/thread/{thread_id}/change/{query}")

    def arrives(self, text: str | re.Pattern[str], at: str = "h1") -> None:
        """Wait until the page shows this text and its scripts handle keys."""
        expect(self.page.locator(at)).to_contain_text(text)
        self.page.wait_for_load_state()

    def sees(self, text: str) -> bool:
        """Whether the page shows a text."""
        return self.page.get_by_text(text).first.is_visible()

    def width(self) -> int:
        """How wide the page is, what sticks out counted."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth")
        return width

    def find_accessibility_errors(self) -> list[str]:
        """What axe-core finds that is serious or worse."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{error['id']}: {node['html'][:200]}"
            for error in found["violations"]
            if error["impact"] in ("serious", "critical")
            for node in error["nodes"]
        ]


SignIn = Callable[..., Person]


def make_user(name: str, rights: str) -> User:
    """A member of staff: `lead` may do everything."""
    user = User.objects.create(username=name, is_staff=True, is_superuser=rights == "lead")
    if rights != "lead":
        codenames = RIGHTS[rights]
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


@pytest.fixture
def sign_in(browser: Browser, live_server: LiveServer) -> Iterator[SignIn]:
    """Sign in a user. Other arguments configure the browser (width, colors, scripts)."""
    contexts: list[BrowserContext] = []

    def signed_in(name: str = "ana", rights: str = "reviewer", **options: Any) -> Person:
        user = User.objects.filter(username=name).first() or make_user(name, rights)
        client = Client()
        client.force_login(user)
        context = browser.new_context(accept_downloads=True, **options)
        session = client.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        contexts.append(context)
        page = context.new_page()
        person = Person(user, page, live_server.url)
        page.on("pageerror", lambda error: person.errors.append(str(error)))
        page.on(
            "console",
            lambda message: (
                person.errors.append(message.text)
                if message.type == "error" and "favicon" not in message.location["url"]
                else None
            ),
        )
        return person

    yield signed_in
    for context in contexts:
        context.close()


@pytest.fixture
def talks(live_server: LiveServer) -> list[str]:
    """Three conversations, and a rubric."""
    Criterion.objects.create(name="Helpfulness")
    Group.objects.get_or_create(name="Support reviewer")
    memory = Memory()
    made = [
        ("tent", "Tent pole split on its first trip", "My tent pole split, see **the photo**."),
        ("parcel", "Where is my parcel?", "The parcel never arrived."),
        ("refund", "Refund for a used jacket", "I want my money back."),
    ]
    for thread_id, title, text in made:
        memory.create_thread("anna", thread_id=thread_id, title=title, metadata={"plan": "plus"})
        call = {
            "state": "output-error",
            "toolCallId": "c1",
            "toolName": "lookupOrder",
            "args": {"order": "F-1"},
            "errorText": "no answer",
        }
        contents = [
            ("user", [{"type": "text", "text": text}]),
            ("assistant", [{"type": "tool-invocation", "toolInvocation": call}]),
            ("assistant", [{"type": "text", "text": "I am sorry. ```python\nprint(1)\n```"}]),
        ]
        memory.save_messages(
            [
                {
                    "id": f"{thread_id}-{n}",
                    "role": role,
                    "threadId": thread_id,
                    "resourceId": "anna",
                    "content": {"format": 2, "parts": parts},
                }
                for n, (role, parts) in enumerate(contents)
            ]
        )
    return list(Thread.objects.order_by("pk").values_list("pk", flat=True))
