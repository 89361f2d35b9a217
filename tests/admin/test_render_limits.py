"""What strangers stored cannot make a page slow or large; all of it can be read as plain text."""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape

from mastra_memory.admin import render_budget
from mastra_memory.admin.markdown import TooComplex, render_markdown
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.content.redaction import keep_text
from mastra_memory.models import Message, ObservationEvent, Thread, ThreadChange, WorkingMemory
from tests.admin.conftest import SignIn
from tests.admin.pages import LIST, page_of, text_of
from tests.support.factories import (
    Json,
    a_message,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    text_content,
)
from tests.support.waiting import fail_after

pytestmark = pytest.mark.django_db

logger = logging.getLogger(__name__)

MAX_BYTES = 5_000_000


def texts(text: str, count: int) -> Json:
    return {"format": 2, "parts": [{"type": "text", "text": text}] * count}


def call(**fields: Any) -> Json:
    invocation = {"state": "result", "toolCallId": "c", "toolName": "t", "args": {}, **fields}
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    return {"format": 2, "parts": [part]}


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


CONTENTS: dict[str, Callable[[], Json]] = {
    "language without an end": lambda: text_content("```mcschema\n<!--\n```"),
    "slow lexer": lambda: text_content("```cpp\n" + "\n" * 19_000 + "```"),
    "images, 60 parts": lambda: texts("![" * 9_990, 60),
    "brackets, 200 parts": lambda: texts("[" * 19_990, 200),
    "lazy quotes, 60 parts": lambda: texts("> " * 200 + "\n" + "a\n" * 9_500, 60),
    "tables, 100 parts": lambda: texts(
        "|" + "a|" * 600 + "\n|" + "-|" * 600 + "\n" + "|\n" * 400, 100
    ),
    "emphasis, 100 parts": lambda: texts("*a " * 3_000 + "b*" * 5_000, 100),
    "half a million parts": lambda: texts("x", 500_000),
    "half a million unknown parts": lambda: {"format": 2, "parts": [{"type": "?"}] * 500_000},
    "one text of 19 MB": lambda: text_content("0" * 19_000_000),
    "tool arguments of 10 MB": lambda: call(args={"list": [0] * 5_000_000}),
    "tool result of 19 MB": lambda: call(result={"text": "a" * 19_000_000}),
    "deep tool result": lambda: call(result=nested(200)),
    "long names": lambda: call(state="s" * 5_000_000, toolName="n" * 5_000_000),
    "error of 10 MB": lambda: call(state="output-error", errorText="0" * 10_000_000),
    "file name of 10 MB": lambda: {
        "format": 2,
        "parts": [{"type": "file", "filename": "0" * 10_000_000, "mimeType": "x", "data": "AA"}],
    },
    "address of 10 MB": lambda: {
        "format": 2,
        "parts": [{"type": "source", "source": {"url": "https://" + "0" * 10_000_000}}],
    },
    "reasoning": lambda: {
        "format": 2,
        "parts": [{"type": "reasoning", "reasoning": "![" * 9_990}] * 60,
    },
}


def store(content: Json, count: int = 1) -> Thread:
    """A conversation of messages as an older version or an import may have stored them."""
    thread = Thread.objects.create(id="attacked", resource_id="mallory", title="Attack")
    for number in range(count):
        Message.objects.create(
            id=f"m{number}", thread=thread, resource_id="mallory", role="user", content=content
        )
    return thread


def check(client: Client, address: str, *, status: int = 200) -> Any:
    """Load a page and compare its size with the limit; a page that never ends fails."""
    with fail_after():
        response = client.get(address)
    assert response.status_code == status
    assert len(response.content) < MAX_BYTES
    return response


@pytest.mark.parametrize("name", CONTENTS)
def test_message__cannot_make_pages_slow(admin: Client, name: str) -> None:
    thread = store(CONTENTS[name]())
    sequence = Message.objects.values_list("sequence", flat=True).get()
    check(admin, page_of(thread.pk))
    check(admin, LIST)
    check(admin, f"{LIST}{thread.pk}/text/message/{sequence}/")


def test_page__has_one_budget_for_all_messages(admin: Client) -> None:
    thread = store(texts("![" * 4_000 + "|", 10), count=40)
    response = check(admin, page_of(thread.pk))
    assert text_of(response).count("Show the whole message as plain text") > 20
    check(admin, f"{LIST}{thread.pk}/print/")


def test_page__ordinary_messages_are_complete(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the same work takes more processor time.
    monkeypatch.setattr(RenderBudget, "measure", lambda budget: nullcontext())
    monkeypatch.setattr(render_budget, "MAX_TEXT_SECONDS", 60.0)
    thread = store(text_content("# Title\n\n" + "A *short* `line`.\n\n" * 60), count=200)
    for address in (page_of(thread.pk), f"{LIST}{thread.pk}/print/"):
        page = check(admin, address).content.decode()
        assert page.count("<h1>Title</h1>") in (40, 200)
        assert "mm-omitted" not in page and "mm-plain" not in page


def test_plain_text__shows_everything_page_by_page(admin: Client) -> None:
    lines = [f"line {number} <b>" for number in range(30_000)]
    parts = [{"type": "text", "text": "\n".join(lines)}, *call(result={"a": "x\ny"})["parts"]]
    thread = store({"format": 2, "parts": parts})
    sequence = Message.objects.values_list("sequence", flat=True).get()
    page = check(admin, page_of(thread.pk)).content.decode()
    address = f"{LIST}{thread.pk}/text/message/{sequence}/"
    assert address in page
    whole = ""
    for number in range(1, 9):
        response = admin.get(address, {"page": number})
        if response.status_code == 404:
            break
        whole += response.context["page"].text
    assert whole.startswith("\n".join(lines) + "\n\n")
    assert '"a": "x\ny"' in whole
    assert escape("line 5 <b>") in check(admin, address).content.decode()
    for wrong in ("0", "-1", "²", "9" * 5_000, "99", "x"):
        assert admin.get(address, {"page": wrong}).status_code == 404


def test_plain_text__masks_what_lies_across_pages(sign_in: SignIn) -> None:
    viewer = sign_in("eve", "view_thread")
    text = "x" * 99_990 + " zoe@example.com " + "y" * 99_990 + " +48 601 234 567 z"
    thread = store(text_content(text))
    sequence = Message.objects.values_list("sequence", flat=True).get()
    address = f"{LIST}{thread.pk}/text/message/{sequence}/"
    pages = [viewer.get(address, {"page": n}).context["page"].text for n in (1, 2, 3)]
    whole = "".join(pages).strip()
    assert whole == "x" * 99_990 + " [email] " + "y" * 99_990 + " [phone] z"
    assert all("@" not in page for page in pages)


def test_plain_text__is_for_those_who_may_see_the_conversation(
    sign_in: SignIn, settings: Any
) -> None:
    thread = store(text_content("secret"))
    other = make_thread("bob", "other")
    record = make_record(other)
    memory = WorkingMemory.objects.create(scope="resource", resource_id="bob", content="x")
    sequence = Message.objects.values_list("sequence", flat=True).get()
    viewer, stranger = sign_in("eve", "view_thread"), sign_in("nobody")
    addresses = [f"message/{sequence}", "metadata/thread"]
    for address in addresses:
        path = f"{LIST}{thread.pk}/text/{address}/"
        assert viewer.get(path).status_code == 200
        assert stranger.get(path).status_code == 403
        assert Client().get(path).status_code == 302
    foreign = [f"memory/{memory.pk}", f"observations/{record.pk}", f"message/{sequence + 1}"]
    for address in [*foreign, "message/x", "message/²", "other/1", "metadata/0", "memory/%00"]:
        assert viewer.get(f"{LIST}{thread.pk}/text/{address}/").status_code == 404, address
    assert viewer.get(f"{LIST}{other.id}/text/memory/{memory.pk}/").status_code == 200
    assert viewer.get(f"{LIST}{other.id}/text/observations/{record.pk}/").status_code == 200
    settings.MASTRA_MEMORY = {
        **settings.MASTRA_MEMORY,
        "ADMIN_THREADS": "tests.admin.test_render_limits.no_threads",
    }
    for address in addresses:
        assert viewer.get(f"{LIST}{thread.pk}/text/{address}/").status_code == 404
    keeper = sign_in("kim", "view_workingmemory", "view_observationalrecord", "view_thread")
    for model, pk in (("workingmemory", memory.pk), ("observationalrecord", record.pk)):
        path = f"/admin/mastra_memory/{model}/{pk}/text/"
        assert keeper.get(path).status_code == 404
        assert stranger.get(path).status_code == 403


def no_threads(request: Any, threads: Any) -> Any:
    """Refuse access to all threads."""
    return threads.none()


MEMORIES = {
    "brackets": "[" * 950,
    "deep JSON": "[" * 240 + "]" * 240,
    "deeper JSON": "[" * 9_000 + "]" * 9_000,
    "images": "![" * 9_990,
    "long": "0" * 5_000_000,
    "long JSON": '{"a": [' + "0," * 90_000 + "0]}",
    "lines": "\n".join(str(n % 90) for n in range(6_000)),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_working_memory__any_content_is_shown(admin: Client, name: str) -> None:
    content = MEMORIES[name]
    thread = make_thread("mallory", "attacked")
    row = WorkingMemory.objects.create(scope="resource", resource_id="mallory", content=content)
    for version in range(1, 22):
        row.revisions.create(version=version, content=content[version:], source="api")
    response = check(admin, page_of(thread.id))
    assert content[:100] in response.content.decode() or "JSON" in name
    check(admin, f"/admin/mastra_memory/workingmemory/{row.pk}/change/")
    check(admin, "/admin/mastra_memory/workingmemory/")
    check(admin, f"/admin/mastra_memory/workingmemory/{row.pk}/text/")
    check(admin, f"{LIST}{thread.id}/text/memory/{row.pk}/")


LOGS: dict[str, str] = {
    "images": "![" * 40_000,
    "one line of 5 MB": "0" * 5_000_000,
    "groups without an end": '<observation-group range="a:' * 9_000,
    "groups on lines": '<observation-group id="a" range="a:b">\n' * 20_000,
    "40,000 observations": "".join(f"* 🔴 (10:00) likes {n}\n" for n in range(40_000)),
    "nested ever more deeply": "".join(f"{' ' * depth}* x\n" for depth in range(2_000)),
    "long observations": f"* 🟡 {'word ' * 4_000}\n" * 200,
    "threads without an end": '<thread id="a">\n' * 60_000,
    "days": "Date: Jan 1, 2024\n* x\nDate: Jan 2, 2024\n* y\n" * 8_000,
}


@pytest.mark.parametrize("name", LOGS)
def test_observations__any_content_is_shown(admin: Client, name: str) -> None:
    text = LOGS[name]
    thread = make_thread("mallory", "attacked")
    save([a_message(thread, "m1")])
    make_record(thread, active_observations=text[::-1])
    record = make_record(
        thread,
        generation_count=1,
        active_observations=text,
        buffered_reflection=text,
        error=text,
        created_by_name=text[:1_000],
    )
    for position in range(3):
        make_chunk(
            record,
            position,
            observations=text[position:],
            message_ids=["m1"] * 2_000,
            hints={"currentTask": text},
            activated_at=moment() if position else None,
        )
    data = {"observations": [text] * 3, "action": text, "before": text, "after": text}
    for operation in ("edit", "reflection"):
        ObservationEvent.objects.create(
            record=record, operation=operation, data=data, error=text, user_name=text[:1_000]
        )
    check(admin, page_of(thread.id))
    for view in ("log", "batches", "generations", "events"):
        check(admin, f"/admin/mastra_memory/observationalrecord/{record.pk}/change/?view={view}")
    for page in ("", f"{record.pk}/change/?page=1", f"{record.pk}/text/"):
        check(admin, f"/admin/mastra_memory/observationalrecord/{page}")
    check(admin, f"{LIST}{thread.id}/text/observations/{record.pk}/")


@pytest.mark.parametrize("viewer", ["admin", "reviewer"])
def test_titles__of_20_mb_do_not_slow_lists(request: Any, viewer: str) -> None:
    client = request.getfixturevalue(viewer)
    for number in range(3):
        title, metadata = "0" * 20_000_000, {"a": "b" * 5_000_000}
        Thread.objects.create(
            id=f"t{number}", resource_id="mallory", title=title, metadata=metadata
        )
        WorkingMemory.objects.create(scope="thread", thread_id=f"t{number}", resource_id="mallory")
    response = check(client, LIST)
    assert len(response.content) < 100_000
    check(client, page_of("t0"))
    check(client, f"{LIST}t0/text/metadata/thread/")
    check(client, "/admin/mastra_memory/workingmemory/")


def test_history__long_changes_are_not_compared(admin: Client) -> None:
    thread = store(text_content("x"))
    for number in range(50):
        ThreadChange.objects.create(
            thread=thread, kind="title", before="0" * 1_000_000, after=f"t{number}"
        )
    assert "Too long to compare." in text_of(check(admin, page_of(thread.pk)))


def test_render__stops_when_its_time_is_up() -> None:
    with pytest.raises(TooComplex):
        render_markdown("![" * 9_990, seconds=0.01)
    with pytest.raises(TooComplex):
        render_markdown("|" + "a|" * 300 + "\n|" + "-|" * 300 + "\n" + "|\n" * 300, seconds=60)


def test_budget__is_spent_by_what_is_shown() -> None:
    budget = RenderBudget(characters=5_000, blocks=3)
    assert budget.render_prose("*a*", keep_text).html == "<p><em>a</em></p>\n"
    long = budget.render_prose("b" * 9_000, keep_text)
    assert (len(long.text), long.is_cut) == (4_000, True)
    text, is_cut = budget.render_json({"a": "c" * 9_000}, keep_text)
    assert len(text) < 1_000 and is_cut
    assert budget.is_spent
    nothing = budget.render_prose("d", keep_text)
    assert (nothing.html, nothing.text, nothing.is_cut) == ("", "", True)
