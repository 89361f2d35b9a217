"""What strangers wrote shows as text, and the pages allow no inline script."""

import re
from typing import Any

import pytest
from django.test import Client

from tests.admin.pages import LIST, page_of, text_of
from tests.support.factories import a_message, make_thread, save, text_content

pytestmark = pytest.mark.django_db

EVIL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><circle/></svg>",
    "<style>body{display:none}</style>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](http://tracker.example/pixel.gif)",
    '![x](x" onerror="alert(1))',
    '<a href="vbscript:x" onclick="alert(1)">x</a>',
    "[x](/admin/logout/)",
    "<form action=http://evil.example><input name=q></form>",
    "`</code><script>alert(1)</script>`",
    "```html\n</pre><script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\ncode\n```',
    "| <b onmouseover=alert(1)> | x |\n|---|---|\n| <script> | y |",
    "{{ settings.SECRET_KEY }} {% load static %}",
    "\u202egnitirw\u202c \u202d reversed",
    "# " + "[" * 3000,
    "> " * 2000 + "deep",
    "*a_ " * 3000,
]

TAGS = re.compile(r"<(script|style|iframe|svg|object|embed|form|input|img|base|meta|link)\b", re.I)


def body_of(response: Any) -> str:
    """The timeline of a conversation page."""
    page: str = response.content.decode()
    return page[page.index('id="timeline"') : page.index("</section>")]


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_message__hostile_text_is_only_text(reviewer: Client, text: str) -> None:
    thread = make_thread(title=text[:500], metadata={"evil": text})
    save([a_message(thread, text=text)])
    response = reviewer.get(page_of(thread.id))
    prose = "".join(re.findall(r'<div class="mm-prose[^>]*>.*?</div>', body_of(response), re.S))
    assert not TAGS.search(prose)
    assert not re.search(r"<[^>]+\son\w+\s*=", response.content.decode())
    links = re.findall(r'<a\b[^>]*?href="([^"]*)"', response.content.decode())
    assert not [link for link in links if not re.match(r"https?:|mailto:|/|\?|#", link)]
    assert "\u202e" not in response.content.decode()


def test_message__hostile_parts_are_only_text(reviewer: Client) -> None:
    evil = "<script>alert(1)</script>"
    thread = make_thread()
    parts = [
        {"type": evil, "x": evil},
        {"type": "reasoning", "reasoning": evil},
        {"type": "file", "data": "javascript:alert(1)", "mimeType": evil, "filename": evil},
        {"type": "file", "data": "https://x.example/a.png", "mimeType": "image/png"},
        {"type": "source", "source": {"url": "javascript:alert(1)", "title": evil}},
        {
            "type": "tool-invocation",
            "toolInvocation": {
                "state": evil,
                "toolName": evil,
                "args": {evil: evil},
                "result": evil,
            },
        },
    ]
    save([a_message(thread, content={"format": 2, "parts": parts})])
    response = reviewer.get(page_of(thread.id))
    page = body_of(response)
    assert "<script" not in page and 'href="javascript' not in page
    assert '<img src="https://x.example' not in page, (
        "an image on another host would reveal the reader"
    )
    assert evil in text_of(response)


def test_pages__allow_no_inline_script_or_style(admin: Client) -> None:
    thread = make_thread(title="x")
    save([a_message(thread, "m1")])
    paths = [LIST, f"{LIST}?q=hello", f"{LIST}team/", page_of(thread.id)]
    paths += [f"{LIST}{thread.id}/{page}/" for page in ("print", "edit/title", "delete", "here")]
    paths += [f"{LIST}{thread.id}/edit/message/?message=m1"]
    for path in paths:
        response = admin.get(path)
        assert response.status_code == 200, path
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        page = response.content.decode()
        scripts = re.findall(r"<script\b(?![^>]*\bsrc=)[^>]*>", page)
        assert all('type="application/json"' in script for script in scripts), path
        assert "<style" not in page and not re.search(r"<[^>]+\sstyle=", page), path


def test_message__endless_lines_are_cut_and_offered_whole(reviewer: Client) -> None:
    thread = make_thread()
    [message] = save([a_message(thread, text="ab " + "x" * 400_000)])
    response = reviewer.get(page_of(thread.id))
    assert len(response.content) < 100_000
    address = f"{LIST}{thread.id}/text/message/{message.sequence}/"
    assert address in response.content.decode()
    pages = [reviewer.get(address, {"page": number}) for number in range(1, 6)]
    assert sum(page.context["page"].text.count("x") for page in pages) == 400_000
    assert all(len(page.content) < 120_000 for page in pages)
    assert reviewer.get(address, {"page": 6}).status_code == 404


def test_message__a_data_uri_is_loaded_on_demand(reviewer: Client) -> None:
    thread = make_thread()
    data = "data:image/png;base64," + "iVBORw0KGgoA" * 500_000
    content = {"format": 2, "parts": [{"type": "file", "mimeType": "image/png", "data": data}]}
    [message] = save([a_message(thread, content=content)])
    response = reviewer.get(page_of(thread.id))
    assert len(response.content) < 100_000 and b"iVBOR" not in response.content
    picture = reviewer.get(f"{LIST}{thread.id}/file/{message.sequence}/0/")
    assert picture["Content-Type"] == "image/png" and len(picture.content) == 4_500_000
    assert b"iVBOR" not in reviewer.get(LIST).content


@pytest.mark.parametrize("mime_type", ["text/html", "image/svg+xml", "application/pdf", "image/x"])
def test_file__anything_but_a_picture_is_a_download(reviewer: Client, mime_type: str) -> None:
    thread = make_thread()
    data = f"data:{mime_type},<script>alert(1)</script>"
    content = {"format": 2, "parts": [{"type": "file", "mimeType": mime_type, "data": data}]}
    [message] = save([a_message(thread, content=content)])
    response = reviewer.get(f"{LIST}{thread.id}/file/{message.sequence}/0/")
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response["Content-Security-Policy"]


def test_ids__of_any_kind_have_pages(admin: Client) -> None:
    for number, thread_id in enumerate(
        ["a/b", "a b?c=d&e#f", "ünï/変", "_5F", "x/change/y", '"<b>']
    ):
        thread = make_thread(f"resource {thread_id}", thread_id, title=f"Title {number}")
        save([a_message(thread, f"{thread_id}/m", content=text_content("hi"))])
        assert f"Title {number}" in text_of(admin.get(page_of(thread_id)))
        assert admin.get(page_of(thread_id, at=f"{thread_id}/m")).status_code == 200
        found = text_of(admin.get(LIST, {"resource": f"resource {thread_id}"}))
        assert f"Title {number}" in found and "1 conversation" in found
