"""A reviewer's day in a browser: find, read, note, tag, edit, clone, export, next."""

import re

import pytest
from playwright.sync_api import Dialog, expect

from mastra_memory.memory import Memory
from mastra_memory.models import Message, Review, ReviewNote, Score, Thread, WorkingMemory
from mastra_memory.review import reviews
from tests.browser.conftest import Person, SignIn
from tests.support.factories import fill, make_thread

LIST = "/admin/mastra_memory/thread/"
PAGES = [
    "?all=1",
    "?q=split",
    "?status=new&tag=",
    "team/",
    "exports/",
    "tent/print/",
    "tent/edit/metadata/",
    "tent/edit/message/?message=tent-0",
    "tent/delete/",
]


def assign(person: Person, *ids: str) -> None:
    """Assign conversations to a user."""
    reviews.update_reviews(list(ids), by=person.user, assignee_id=person.user.pk)


def test_day__from_finding_to_the_next(sign_in: SignIn, talks: list[str]) -> None:
    lead = sign_in("lena", "lead")
    assign(lead, *talks)
    page = lead.page
    lead.open(f"{LIST}?all=1")
    page.get_by_label("Search", exact=True).fill("split")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("mark")).to_have_text("split")
    page.get_by_role("link", name="Tent pole split").click()
    expect(page.locator("strong", has_text="the photo")).to_be_visible()
    expect(page.get_by_text("no answer")).to_be_visible()

    page.get_by_label("Note on this conversation").fill("Ask logistics")
    page.get_by_role("button", name="Add note").last.click()
    expect(page.locator(".mm-side .mm-note-text")).to_have_text("Ask logistics")
    page.get_by_label("New tag").fill("warranty")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".mm-side .mm-tag")).to_contain_text("warranty")
    page.get_by_label("Helpfulness").focus()
    page.keyboard.press("4")
    with page.expect_response(re.compile("/do/review/")):
        page.get_by_role("button", name="Save", exact=True).last.click()
    assert Score.objects.get().answer == "4"

    message = page.locator("#content article").first
    message.locator("summary", has_text="Note or edit").click()
    message.get_by_role("link", name="Edit text").click()
    page.get_by_label("Message").fill("My tent pole broke.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("My tent pole broke.").first).to_be_visible()
    expect(page.locator(".mm-edited")).to_be_visible()
    page.locator("#mm-history > summary").click()
    page.get_by_role("button", name="Undo the last edit").click()
    expect(page.locator("strong", has_text="the photo")).to_be_visible()
    assert Message.objects.get(pk="tent-0").text == "My tent pole split, see **the photo**."

    with page.expect_download() as download:
        page.locator(".mm-menu > summary").click()
        page.get_by_role("button", name="Markdown").click()
    assert "# Tent pole split" in download.value.path().read_text()
    page.keyboard.press("Escape")

    page.locator("#content article").nth(1).locator("summary", has_text="Note or edit").click()
    page.locator("#content article").nth(1).get_by_role("button", name="Clone up to here").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Clone of Tent pole")
    assert Thread.objects.get(clone_source_id="tent").messages.count() == 2

    lead.open_thread("tent")
    page.get_by_role("button", name=re.compile("Resolve and next")).click()
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("Tent pole")
    assert Review.objects.get(pk="tent").status == "resolved"
    assert lead.errors == []


def test_day__by_keyboard_alone(sign_in: SignIn, talks: list[str]) -> None:
    ana = sign_in()
    assign(ana, *talks)
    page, press = ana.page, ana.page.keyboard.press
    ana.open(f"{LIST}?all=1")
    press("/")
    page.keyboard.type("parcel")
    press("Enter")
    expect(page.locator("mark").first).to_be_visible()
    for _ in range(60):  # Tab leads to the hit
        press("Tab")
        if page.evaluate("document.activeElement.className") == "mm-title":
            break
    press("Enter")
    ana.arrives("Where is my parcel?")

    press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    press("k")  # the search led to the first message
    press("j")
    assert page.evaluate("document.activeElement.id").startswith("m")
    press("c")
    page.keyboard.type("Slow tool")
    press("Control+Enter")
    ana.arrives("Slow tool", at="article .mm-note-text")
    assert ReviewNote.objects.get().message_id == "parcel-1"
    press("Escape")
    press("#")
    page.keyboard.type("late")
    press("Enter")
    ana.arrives("late", at=".mm-side .mm-tag")
    page.evaluate("document.activeElement.blur()")
    press("x")
    ana.arrives("lookupOrder", at="article.mm-target")
    press("f")
    ana.arrives("flagged", at="#mm-head .mm-status")
    press("r")
    ana.arrives(re.compile("^(?!.*parcel)"))
    assert Review.objects.get(pk="parcel").status == "resolved"
    press("l")
    expect(page.get_by_role("heading", level=1)).to_have_text("Conversations")
    assert ana.errors == []


def test_day__on_a_telephone(sign_in: SignIn, talks: list[str]) -> None:
    lead = sign_in("lena", "lead", viewport={"width": 390, "height": 844}, has_touch=True)
    page = lead.page
    lead.open(f"{LIST}?all=1")
    assert lead.width() <= 390
    page.get_by_role("link", name="Tent pole split").click()
    lead.arrives("Tent pole split")
    assert lead.width() <= 390
    page.get_by_label("Status").select_option("waiting")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.locator("#mm-head .mm-status")).to_have_text("waiting")
    for path in ("team/", "exports/", "tent/edit/metadata/", "tent/print/", "?status=waiting"):
        lead.open(LIST + path)
        assert lead.width() <= 390, path


def test_pages__without_rights_show_nothing(sign_in: SignIn, talks: list[str]) -> None:
    nobody, viewer = sign_in("nora", "nobody"), sign_in("vic", "viewer")
    for path in ("", "team/", "tent/change/", "tent/edit/title/", "tent/print/", "exports/"):
        assert nobody.open(LIST + path).status == 403, path
        assert "split" not in nobody.page.content()
    for path in ("tent/edit/title/", "tent/edit/message/?message=tent-0", "tent/print/"):
        assert viewer.open(LIST + path).status == 403, path
    viewer.open_thread("tent")
    assert viewer.page.locator("#content form[method=post]").count() == 0
    assert viewer.sees("My tent pole split")


def test_presence__two_people_see_each_other(sign_in: SignIn, talks: list[str]) -> None:
    ana, ben = sign_in("ana"), sign_in("ben")
    ana.open_thread("tent")
    ben.open_thread("tent")
    expect(ben.page.get_by_text("ana is looking at this conversation too")).to_be_visible()
    ana.page.get_by_label("Status").select_option("resolved")
    ana.page.get_by_role("button", name="Save", exact=True).first.click()
    expect(ben.page.get_by_text("ana changed the review")).to_be_visible(timeout=20_000)
    ben.page.get_by_label("Status").select_option("flagged")
    ben.page.get_by_role("button", name="Save", exact=True).first.click()
    expect(ben.page.get_by_text("your change was not saved")).to_be_visible()
    assert Review.objects.get(pk="tent").status == "resolved"


def test_timeline__earlier_messages_come_in_place(sign_in: SignIn, talks: list[str]) -> None:
    ana = sign_in()
    thread = make_thread("anna", "long")
    fill(thread, 130)
    ana.open_thread("long")
    expect(ana.page.locator("article")).to_have_count(40)
    ana.page.get_by_role("link", name="Earlier messages").click()
    expect(ana.page.locator("article")).to_have_count(80)
    assert "before" not in ana.page.url  # added in place, so the address stays
    texts = ana.page.locator("article .mm-prose").all_inner_texts()
    assert texts == [f"Message {n}" for n in range(50, 130)]
    ana.open_thread("long", "?at=long:60")
    expect(ana.page.locator("article.mm-target")).to_be_in_viewport()
    assert ana.errors == []


def test_review__saving_keeps_the_place_one_reads_at(sign_in: SignIn, talks: list[str]) -> None:
    ana = sign_in()
    fill(make_thread("anna", "long"), 200)
    ana.open_thread("long", "?at=long:60")
    expect(ana.page.locator("article.mm-target")).to_be_in_viewport()
    ana.page.get_by_label("Status").select_option("waiting")
    ana.page.get_by_role("button", name="Save", exact=True).first.click()
    expect(ana.page.locator("#mm-head .mm-status")).to_have_text("waiting")
    ana.page.get_by_label("New tag").fill("slow")
    ana.page.get_by_role("button", name="Add", exact=True).click()
    expect(ana.page.locator("#desk .mm-tag")).to_contain_text("slow")
    expect(ana.page.locator("article.mm-target")).to_be_in_viewport()
    reviews.update_reviews(["long"], by=ana.user, status="flagged")
    ana.page.get_by_label("Status").select_option("resolved")
    ana.page.get_by_role("button", name="Save", exact=True).first.click()
    expect(ana.page.get_by_text("your change was not saved")).to_be_visible()
    expect(ana.page.locator("#mm-head .mm-status")).to_have_text("flagged")
    assert ana.errors == []


def test_reading__needs_no_scripts(sign_in: SignIn, talks: list[str]) -> None:
    ana = sign_in(java_script_enabled=False)
    fill(make_thread("anna", "long"), 130)
    ana.open_thread("long")
    ana.page.get_by_role("link", name="Earlier messages").click()
    expect(ana.page.get_by_text("Message 50", exact=True)).to_be_visible()
    expect(ana.page.locator("article")).to_have_count(40)
    ana.open_thread("tent")
    ana.page.get_by_label("Note on this conversation").fill("No scripts here")
    ana.page.get_by_role("button", name="Add note").last.click()
    expect(ana.page.locator(".mm-side .mm-note-text")).to_have_text("No scripts here")


def test_memory__is_edited_and_restored(sign_in: SignIn, talks: list[str]) -> None:
    lead = sign_in("lena", "lead")
    options = {"workingMemory": {"enabled": True}}
    Memory(options=options).update_working_memory("tent", "# Customer\n- likes tea")
    lead.open_thread("tent")
    panel = lead.page.locator("details.mm-panel", has_text="Working memory")
    panel.locator("summary", has_text="Edit").click()
    panel.get_by_label("Working memory").fill("# Customer\n- likes coffee")
    panel.get_by_role("button", name="Save").click()
    expect(panel.locator(".mm-prose li")).to_have_text("likes coffee")
    panel.locator("summary", has_text="Revisions").click()
    expect(panel.locator(".mm-removed").first).to_have_text("- - likes tea")
    panel.get_by_role("button", name="Restore this text").click()
    expect(panel.locator(".mm-prose li")).to_have_text("likes tea")
    assert WorkingMemory.objects.get().version == 3


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_pages__have_no_serious_accessibility_fault(
    sign_in: SignIn, talks: list[str], colours: str
) -> None:
    lead = sign_in("lena", "lead", color_scheme=colours)
    assign(lead, *talks)
    lead.open_thread("tent")
    lead.page.get_by_label("Note on this conversation").fill("x")
    lead.page.get_by_role("button", name="Add note").last.click()
    expect(lead.page.locator(".mm-side .mm-note-text")).to_have_text("x")
    lead.page.locator("#mm-history > summary").click()
    errors = {"conversation": lead.find_accessibility_errors()}
    for path in PAGES:
        lead.open(LIST + path)
        errors[path] = lead.find_accessibility_errors()
    lead.open_thread("tent")
    lead.page.keyboard.press("?")
    expect(lead.page.get_by_role("dialog")).to_be_visible()
    errors["help"] = lead.find_accessibility_errors()
    assert {path: found for path, found in errors.items() if found} == {}
    assert lead.errors == []


def test_list__by_keys(sign_in: SignIn, talks: list[str]) -> None:
    ana = sign_in()
    page, press = ana.page, ana.page.keyboard.press
    ana.open(f"{LIST}?all=1")
    press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    press("Escape")
    for key in ("j", "x", "j", "x", "k"):
        press(key)
    expect(page.locator(".action-select:checked")).to_have_count(2)
    press("a")
    page.keyboard.type("Assign to me")
    page.get_by_role("button", name="Go").press("Enter")
    expect(page.get_by_text("2 conversations were changed")).to_be_visible()
    page.get_by_role("link", name="Open the first").press("Enter")
    expect(page.locator("#content article").first).to_be_visible()
    assert Review.objects.filter(assignee_id=ana.user.pk).count() == 2
    assert ana.errors == []


def test_list__addresses_contain_only_chosen_filters(sign_in: SignIn, talks: list[str]) -> None:
    ana = sign_in()
    page = ana.page
    ana.open(f"{LIST}?all=1")
    page.locator("summary", has_text="Filters").click()
    page.get_by_label("Has tool errors").select_option("yes")
    page.get_by_label("Last activity", exact=True).select_option("today")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_label("Filters in use")).to_contain_text("Last activity today")
    assert page.url.endswith("?active=today&tool_errors=yes")
    page.get_by_role("link", name="Remove the filter Has tool errors").click()
    page.wait_for_url("**/?active=today")
    page.locator("summary", has_text="Filters").click()
    page.get_by_label("Last activity", exact=True).select_option("")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**/?all=1")


def test_draft__is_not_lost_by_a_key(sign_in: SignIn, talks: list[str]) -> None:
    ana = sign_in()
    assign(ana, *talks)
    page = ana.page
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    ana.open_thread("tent")
    page.get_by_label("Note on this conversation").click()
    page.keyboard.press("Escape")
    page.keyboard.press("l")  # nothing is written or chosen: nothing to ask
    ana.arrives("Conversations")
    ana.open_thread("tent")
    note = page.get_by_label("Note on this conversation")
    note.press_sequentially("half a thought")
    note.press("Escape")
    with page.expect_event("dialog"):
        page.keyboard.press("n")
    assert asked == ["beforeunload"] and "/tent/" in page.url
    page.get_by_label("Priority").select_option("high")
    page.keyboard.press("Escape")
    page.keyboard.press("f")  # saves everything in place: nothing to ask
    expect(page.locator("#mm-head .mm-status")).to_have_text("flagged")
    expect(page.locator("#mm-head .mm-priority")).to_contain_text("high")
    expect(page.locator(".mm-side .mm-note-text")).to_have_text("half a thought")
    expect(note).to_have_value("")
    assert asked == ["beforeunload"]
    page.get_by_label("Status").select_option("waiting")
    page.keyboard.press("Escape")
    with page.expect_event("dialog"):
        page.keyboard.press("n")
    assert asked == ["beforeunload", "beforeunload"]


def test_presence__a_note_of_a_colleague_is_announced(sign_in: SignIn, talks: list[str]) -> None:
    ana, ben = sign_in("ana"), sign_in("ben")
    ben.open_thread("tent")
    ana.open_thread("tent")
    ana.page.get_by_label("Note on this conversation").fill("Ben, call the carrier")
    ana.page.get_by_role("button", name="Add note").last.click()
    notice = ben.page.locator("#mm-here", has_text="There is 1 new note.")
    expect(notice).to_be_visible(timeout=20_000)
    notice.get_by_role("link", name="Reload").click()
    expect(ben.page.locator(".mm-side .mm-note-text")).to_have_text("Ben, call the carrier")
