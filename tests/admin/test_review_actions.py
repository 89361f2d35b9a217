"""Reviewing: the forms of the conversation page and the bulk actions of the list."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from mastra_memory.models import (
    Criterion,
    Review,
    ReviewNote,
    Score,
    Thread,
    ThreadChange,
    ThreadTag,
)
from tests.admin.conftest import SignIn
from tests.admin.pages import LIST, do, page_of, text_of, user_of
from tests.conftest import Statements
from tests.support.factories import a_message, make_thread, save

pytestmark = pytest.mark.django_db


def test_review__is_set_and_written_down(reviewer: Client) -> None:
    thread, me = make_thread(title="A talk"), user_of(reviewer)
    do(reviewer, thread.id, "review", version="0", status="flagged", priority="3", assignee=me.pk)
    review = Review.objects.get()
    assert (review.status, review.priority, review.version) == ("flagged", 3, 1)
    assert review.assignee_id == str(me.pk)
    change = ThreadChange.objects.get()
    assert change.before == {"status": "new", "priority": 1, "assignee_id": None}
    assert change.after == {"status": "flagged", "priority": 3, "assignee_id": str(me.pk)}
    entry = LogEntry.objects.get()
    assert entry.user == me and entry.object_id == thread.id and '"new"' in entry.change_message


def test_review__an_outdated_form_changes_nothing(reviewer: Client, admin: Client) -> None:
    thread = make_thread()
    do(admin, thread.id, "review", version="0", status="resolved")
    response = do(reviewer, thread.id, "review", version="0", status="waiting")
    page = text_of(response)
    assert "Root changed this review while you were editing, so your change was not saved." in page
    assert "It is now: resolved, unassigned, priority normal." in page
    assert Review.objects.get().status == "resolved"


WHOLE_FORM = {
    "version": "0",
    "status": "waiting",
    "priority": "2",
    "assignee": "",
    "tag": "late",
    "text": "call the carrier",
}


def make_scored_form() -> tuple[Criterion, dict[str, str]]:
    number = Criterion.objects.create(name="Helpfulness")
    return number, {**WHOLE_FORM, f"score-{number.pk}": "4"}


@pytest.mark.parametrize(
    ("button", "status"),
    [
        ({}, "waiting"),
        ({"then": "stay"}, "waiting"),
        ({"then": "next"}, "waiting"),
        ({"set": "resolve"}, "resolved"),
        ({"set": "flag"}, "flagged"),
        ({"set": "take"}, "in_review"),
    ],
)
def test_review__every_button_saves_the_whole_form(
    reviewer: Client, button: dict[str, str], status: str
) -> None:
    thread = make_thread()
    _criterion, form = make_scored_form()
    do(reviewer, thread.id, "review", **form, **button)
    review = Review.objects.get()
    assert (review.status, review.priority, review.version) == (status, 2, 1)
    own_id = str(user_of(reviewer).pk)
    assert review.assignee_id == (own_id if button == {"set": "take"} else None)
    assert Score.objects.get().answer == "4"
    assert ReviewNote.objects.get().text == "call the carrier"
    assert ThreadTag.objects.get().tag.name == "late"


def test_review__a_conflict_keeps_notes_and_scores(reviewer: Client, admin: Client) -> None:
    thread = make_thread()
    _criterion, form = make_scored_form()
    do(admin, thread.id, "review", version="0", status="flagged")
    page = text_of(do(reviewer, thread.id, "review", **form, set="resolve"))
    assert "Your notes, tags and scores were saved." in page
    assert "It is now: flagged" in page
    assert Review.objects.get().status == "flagged"
    assert Score.objects.get().answer == "4"
    assert ReviewNote.objects.get().text == "call the carrier"


def test_review__the_page_reports_changes_by_others(reviewer: Client, admin: Client) -> None:
    thread = make_thread()
    do(admin, thread.id, "review", version="0", status="resolved")
    here = reviewer.get(f"{LIST}{thread.id}/here/?version=0")
    assert "root changed the review" in text_of(here)
    assert "changed" not in text_of(reviewer.get(f"{LIST}{thread.id}/here/?version=1"))


def test_review__nonsense_is_refused(reviewer: Client) -> None:
    thread = make_thread()
    do(reviewer, thread.id, "review", status="vanished", priority="9", assignee="77777")
    do(reviewer, thread.id, "review", assignee="x")
    do(reviewer, thread.id, "note", text="   ")
    do(reviewer, thread.id, "note", text="x", message="nowhere")
    assert not ReviewNote.objects.exists()
    assert all(r.status == "new" and r.assignee_id is None for r in Review.objects.all())
    assert reviewer.get(f"{LIST}{thread.id}/do/note/").status_code == 404
    assert reviewer.post(f"{LIST}{thread.id}/do/dance/").status_code == 404


def test_next__goes_through_the_queue_by_priority(reviewer: Client) -> None:
    me = user_of(reviewer)
    low, high, done = make_thread(title="low"), make_thread(title="high"), make_thread(title="done")
    Review.objects.create(thread_id=low.id, assignee_id=str(me.pk), priority=0)
    Review.objects.create(thread_id=high.id, assignee_id=str(me.pk), priority=3)
    Review.objects.create(thread_id=done.id, assignee_id=str(me.pk), priority=3, status="resolved")
    first = reviewer.get(f"{LIST}next/")
    assert first["Location"] == page_of(high.id)
    response = do(reviewer, high.id, "review", status="resolved", then="next")
    assert response.redirect_chain[-1][0] == page_of(low.id)
    response = do(reviewer, low.id, "review", status="resolved", then="next")
    assert "Your queue is empty" in text_of(response)


def test_next__unassigned_skips_assigned_threads(reviewer: Client, admin: Client) -> None:
    mine, free = make_thread(), make_thread()
    Review.objects.create(thread_id=mine.id, assignee_id=str(user_of(admin).pk))
    assert reviewer.get(f"{LIST}next/?free=1")["Location"] == page_of(free.id)


def test_notes__only_one_s_own_can_be_deleted(reviewer: Client, admin: Client) -> None:
    thread = make_thread()
    save([a_message(thread, "m1")])
    do(admin, thread.id, "note", text="by root", message="m1")
    note = ReviewNote.objects.get()
    assert note.message_id == "m1" and note.author_id == str(user_of(admin).pk)
    response = do(reviewer, thread.id, "unnote", note=note.pk)
    assert "Only your own notes" in text_of(response)
    do(admin, thread.id, "unnote", note=note.pk)
    assert not ReviewNote.objects.exists()
    assert ThreadChange.objects.filter(kind="note").last().before == "by root"  # type: ignore[union-attr]


def test_tags__are_put_on_and_taken_off(reviewer: Client) -> None:
    thread = make_thread(title="Tagged")
    do(reviewer, thread.id, "review", tag="  late   parcel ")
    assert "late parcel" in text_of(reviewer.get(LIST))
    assert "Tagged" in text_of(reviewer.get(LIST, {"tag": "late parcel"}))
    do(reviewer, thread.id, "review", untag="late parcel")
    assert "Tagged" not in text_of(reviewer.get(LIST, {"tag": "late parcel"}))


def test_scores__are_averaged_and_compared(reviewer: Client, admin: Client) -> None:
    thread = make_thread()
    tone = Criterion.objects.create(name="Tone", kind="choice", choices="warm\nneutral\ncold")
    number = Criterion.objects.create(name="Help", minimum=1, maximum=5)
    do(reviewer, thread.id, "review", **{f"score-{tone.pk}": "warm", f"score-{number.pk}": "5"})
    response = do(admin, thread.id, "review", **{f"score-{number.pk}": "3"})
    page = text_of(response)
    assert "ana: 5, root: 3 · agreement 50 %" in page and "ana: warm" in page
    team = text_of(admin.get(f"{LIST}team/"))
    assert "75 % of the maximum, 2 scores, agreement 50 %" in team
    do(admin, thread.id, "review", **{f"score-{number.pk}": "99"})
    assert Score.objects.get(author_id=user_of(admin).pk).answer == "3"
    do(admin, thread.id, "review", **{f"score-{number.pk}": ""})
    assert not Score.objects.filter(author_id=user_of(admin).pk).exists()


def bulk(client: Client, action: str, ids: list[str], **more: str) -> str:
    """Run an action of the list on these threads."""
    fields = {"action": action, "_selected_action": ids, **more}
    return text_of(client.post(LIST, fields, follow=True))


def test_bulk__status_assign_and_tag(reviewer: Client) -> None:
    ids = [make_thread(title=f"Talk {n}").id for n in range(3)]
    assert "2 conversations were changed" in bulk(reviewer, "status_waiting", ids[:2])
    assert set(Review.objects.values_list("status", flat=True)) == {"waiting"}
    asked = bulk(reviewer, "assign", ids)
    assert "Talk 0" in asked and "ana" in asked
    bulk(reviewer, "assign", ids, chosen=str(user_of(reviewer).pk))
    assert Review.objects.filter(assignee_id=user_of(reviewer).pk).count() == 3
    bulk(reviewer, "tag", ids, chosen="batch 7")
    assert text_of(reviewer.get(LIST, {"tag": "batch 7"})).count("Talk") == 3


def test_bulk__costs_the_same_for_many(reviewer: Client, statements: Statements) -> None:
    counts = []
    for size in (1, 2, 40):  # the first one also learns Django's content types
        ids = [make_thread().id for _ in range(size)]
        with statements() as listed:
            reviewer.post(LIST, {"action": "status_waiting", "_selected_action": ids})
        counts.append(len(listed))
    assert counts[1] == counts[2]


def test_bulk__is_offered_by_rights(reviewer: Client, sign_in: SignIn) -> None:
    make_thread()
    assert "Delete selected" not in text_of(reviewer.get(LIST))
    viewer = sign_in("viewer", "view_thread")
    assert "Set status" not in text_of(viewer.get(LIST))
    bulk(viewer, "status_waiting", [Thread.objects.get().pk])
    assert not Review.objects.exists()


def test_delete__shows_what_goes_and_logs_what_it_was(admin: Client) -> None:
    thread = make_thread(title="Old talk")
    save([a_message(thread), a_message(thread)])
    do(admin, thread.id, "note", text="x")
    page = text_of(admin.get(f"{LIST}{thread.id}/delete/"))
    assert "Messages: 2" in page and "Notes: 1" in page
    admin.post(f"{LIST}{thread.id}/delete/", {"post": "yes"})
    assert not Thread.objects.exists() and not ReviewNote.objects.exists()
    entry = LogEntry.objects.get(action_flag=3)
    assert (entry.object_repr, entry.change_message) == (
        "Old talk",
        "deleted: was 2 messages of alice",
    )


def test_take__a_stale_version_is_refused(reviewer: Client, admin: Client) -> None:
    thread = make_thread()
    do(admin, thread.id, "review", set="take", version="0")
    page = text_of(do(reviewer, thread.id, "review", set="take", version="0"))
    assert "Root changed this review" in page and "in review, root" in page
    assert Review.objects.get().assignee_id == str(user_of(admin).pk)


def test_here__reports_new_notes(reviewer: Client, admin: Client) -> None:
    thread = make_thread()
    assert "new note" not in text_of(reviewer.get(f"{LIST}{thread.id}/here/?notes=0"))
    do(admin, thread.id, "note", text="call the carrier")
    assert "There is 1 new note." in text_of(reviewer.get(f"{LIST}{thread.id}/here/?notes=0"))
    seen = ReviewNote.objects.get().pk
    assert "new note" not in text_of(reviewer.get(f"{LIST}{thread.id}/here/?notes={seen}"))


def test_next__an_empty_queue_leads_to_unassigned_threads(reviewer: Client) -> None:
    make_thread()
    page = reviewer.get(f"{LIST}next/", follow=True).content.decode()
    assert f'href="{LIST}next/?free=1"' in page


def test_saving__confirms_and_names_the_previous_thread(reviewer: Client) -> None:
    first, second = make_thread(title="Call anna@example.com"), make_thread(title="Second")
    for thread in (first, second):
        page = text_of(do(reviewer, thread.id, "review", set="take", version="0"))
        assert "Assigned to you." in page
    response = do(reviewer, first.id, "review", status="resolved", version="1", then="next")
    assert "“Call [email]” is now resolved." in text_of(response)
    assert "Saved." in text_of(do(reviewer, second.id, "review", status="waiting", version="1"))


def test_history__describes_changes_in_words(reviewer: Client, admin: Client) -> None:
    thread, me = make_thread(title="A talk"), user_of(reviewer)
    do(reviewer, thread.id, "review", version="0", status="flagged", assignee=me.pk)
    do(reviewer, thread.id, "review", tag="late")
    page = text_of(reviewer.get(page_of(thread.id)))
    assert "- status: new" in page and "+ status: flagged" in page
    assert "- assignee: unassigned" in page and "+ assignee: ana" in page
    assert "+ tag: late" in page


def test_bulk__assign_to_me_links_to_the_first(reviewer: Client) -> None:
    ids = [make_thread().id for _ in range(2)]
    assert "2 conversations were changed. Open the first" in bulk(reviewer, "assign_to_me", ids)


def test_bulk__asks_with_how_many_and_which(reviewer: Client) -> None:
    ids = [make_thread(title=f"Talk {n:02}").id for n in range(23)]
    page = bulk(reviewer, "tag", ids)
    assert "23 conversations" in page and "Talk 22" in page and "and 3 more" in page
    assert "Talk 00" not in page


def test_actions__deleting_is_the_last(admin: Client) -> None:
    make_thread()
    page = text_of(admin.get(LIST))
    places = [page.index(name) for name in ("Assign to me", "Set status: flagged", "Delete sel")]
    assert places == sorted(places)
