"""Hostile conversations in a real browser: nothing runs, nothing is loaded from elsewhere."""

from playwright.sync_api import Dialog, expect

from tests.admin.test_hostile import EVIL
from tests.browser.conftest import SignIn
from tests.support.factories import a_message, make_thread, save


def test_page__runs_and_loads_nothing_of_strangers(sign_in: SignIn) -> None:
    ana = sign_in()
    thread = make_thread("anna", "evil", title=EVIL[0], metadata={"x": EVIL[1]})
    save([a_message(thread, f"e{n}", text=text, at=n) for n, text in enumerate(EVIL)])
    pixel = {"type": "file", "mimeType": "image/png", "data": "https://tracker.example/x.png"}
    save([a_message(thread, "pixel", content={"format": 2, "parts": [pixel]}, at=100)])
    dialogs: list[str] = []
    requests: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    ana.page.on("dialog", dismiss)
    ana.page.on("request", lambda request: requests.append(request.url))
    ana.open_thread("evil")
    for path in ("/admin/mastra_memory/thread/?all=1", "/admin/mastra_memory/thread/?q=click"):
        ana.open(path)
    assert dialogs == []
    assert [url for url in requests if not url.startswith(ana.base)] == []
    assert ana.errors == [], "the policy had nothing to block"


def test_page__endless_lines_stay_inside(sign_in: SignIn) -> None:
    ana = sign_in(viewport={"width": 1200, "height": 800})
    thread = make_thread("anna", "endless", title="t" * 3000)
    save([a_message(thread, "e", text="x" * 19_000)])
    save([a_message(thread, "f", text="y" * 400_000)])
    ana.open_thread("endless")
    assert ana.width() <= 1200
    ana.open("/admin/mastra_memory/thread/?all=1")
    assert ana.width() <= 1200


def test_picture__is_loaded_when_it_is_opened(sign_in: SignIn) -> None:
    ana = sign_in()
    thread = make_thread("anna", "pic")
    png = (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
        "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    part = {"type": "file", "mimeType": "image/png", "data": png, "filename": "dot.png"}
    save([a_message(thread, "p", content={"format": 2, "parts": [part]})])
    requests: list[str] = []
    ana.page.on("request", lambda request: requests.append(request.url))
    ana.open_thread("pic")
    assert not [url for url in requests if "/file/" in url]
    ana.page.locator("summary", has_text="dot.png").click()
    image = ana.page.get_by_alt_text("dot.png")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    assert ana.errors == []
