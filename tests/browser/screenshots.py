"""`make screenshots`: every page with the sample conversations, light, dark and narrow, into docs/.

Run by pytest for its server and database; not one of the tests.
"""

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from mastra_memory.embedding import indexing
from mastra_memory.memory import Memory
from mastra_memory.models import (
    Criterion,
    ExportJob,
    Message,
    ObservationalRecord,
    ObservationEvent,
    Review,
    Thread,
    WorkingMemory,
)
from mastra_memory.review import exports, notes, reviews, saved_views, scores, tags
from project import samples
from tests.browser.conftest import Person, SignIn, make_user

DOCS = Path(__file__).parents[2] / "docs" / "screenshots"
LIST = "/admin/mastra_memory/thread/"
TENT, REFUND = "sample-broken-tent-pole", "sample-refund-denied"
OBSERVED = "observed-upgrade"
SMALL_THRESHOLDS = {
    "observation": {"messageTokens": 600, "bufferTokens": 200, "bufferActivation": 0.8},
    "reflection": {"observationTokens": 500},
}
KINDS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1360, "height": 900}},
    "dark": {"viewport": {"width": 1360, "height": 900}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}


@pytest.fixture
def team(live_server: LiveServer, settings: Settings) -> None:
    """A team at work on the sample conversations."""
    samples.load_samples()
    options = {**settings.MASTRA_MEMORY.get("OPTIONS", {}), "observationalMemory": SMALL_THRESHOLDS}
    settings.MASTRA_MEMORY = {**settings.MASTRA_MEMORY, "OPTIONS": options}
    indexing.embed_pending(seconds=60)
    people = [make_user(name, "reviewer") for name in ("ana", "ben", "chloe")]
    lead = make_user("lena", "lead")
    _add_rubric()
    _review([*people, lead], random.Random(5))
    for pk, tag in (
        (REFUND, "refund"),
        (REFUND, "escalated"),
        (TENT, "warranty"),
        ("sample-api-401", "developer"),
        ("sample-webhook-signature", "developer"),
    ):
        tags.add_tag([pk], tag, by=people[0])
    ordered = Message.objects.filter(thread_id=TENT).order_by("created_at", "sequence")
    answer = ordered[3]
    good = "Good: checks the batch before it promises anything."
    notes.add_note(TENT, good, by=people[0], message_id=answer.pk)
    notes.add_note(TENT, "Ask logistics whether batch 7 is still in stock.", by=people[1])
    saved_views.save_view(lead, "Urgent and open", "priority=3&status=in_review", shared=True)
    saved_views.save_view(lead, "Developers, failed tools", "tag=developer&tool_errors=yes")
    _observe()
    ids = list(Thread.objects.values_list("pk", flat=True))
    job = ExportJob.objects.create(
        owner_id=str(lead.pk), format="csv", thread_ids=ids, masked=False
    )
    exports.run_export(job.pk)
    ExportJob.objects.create(
        owner_id=str(lead.pk),
        format="jsonl",
        thread_ids=ids * 90,
        state="running",
        done=640,
        masked=False,
    )


def _observe() -> ObservationalRecord:
    """Play a conversation message by message while it is observed, and correct the log."""
    memory = Memory()
    memory.observe(thread_id=TENT)
    memory.create_thread("dba-team", thread_id=OBSERVED, title="Upgrading PostgreSQL")
    found = Message.objects.filter(thread_id="sample-postgres-upgrade")
    told = list(found.order_by("created_at", "sequence"))
    for place, row in enumerate(told):
        message = {
            "id": f"pg-{place}",
            "threadId": OBSERVED,
            "resourceId": "dba-team",
            "role": row.role,
            "content": row.content,
            "createdAt": row.created_at.isoformat(),
        }
        memory.save_messages([message])
        if place % 3 == 2 and place < len(told) - 2:
            memory.observe(thread_id=OBSERVED)
        if place == 8:
            first = memory.list_observations(thread_id=OBSERVED)[0]
            memory.pin_observation(first.id, thread_id=OBSERVED, user_name="ana")
            memory.reflect(thread_id=OBSERVED, user_name="lena")
    last = memory.list_observations(thread_id=OBSERVED)[-1]
    memory.edit_observation(
        last.id, f"{last.item.text} (checked)", thread_id=OBSERVED, user_name="ben"
    )
    record = memory.get_observational_record(thread_id=OBSERVED)
    assert record is not None
    ObservationEvent.objects.create(
        record=record,
        thread_id=OBSERVED,
        operation="reflection",
        state="failed",
        finished_at=record.updated_at,
        started_at=record.updated_at,
        error="503 Service Unavailable: the model is overloaded",
        tokens_in=812,
        cost="0.0021",
    )
    return record


def _add_rubric() -> None:
    Criterion.objects.create(
        name="Helpfulness", help_text="Did the customer get what they needed?", position=1
    )
    Criterion.objects.create(name="Tone", kind="choice", choices="warm\nneutral\ncold", position=2)
    Criterion.objects.create(name="Policy followed", kind="yes_no", position=3)


def _review(people: list[User], luck: random.Random) -> None:
    statuses = ["in_review", "resolved", "resolved", "waiting", "in_review", "flagged", "resolved"]
    for place, pk in enumerate(Thread.objects.order_by("pk").values_list("pk", flat=True)):
        if pk == "sample-hello-only":
            continue
        person = people[place % len(people)]
        reviews.update_reviews(
            [pk],
            by=person,
            status=statuses[place % len(statuses)],
            assignee_id=str(person.pk),
            priority=luck.choice([1, 1, 1, 2, 3, 0]),
        )
        for criterion in Criterion.objects.all():
            for scorer in people[:2]:
                values = [value for value, _label in criterion.answers]
                answer = luck.choice(values[-2:] if criterion.kind == "number" else values[:2])
                scores.save_scores(pk, {criterion.pk: answer}, by=scorer)
    for review in Review.objects.filter(status="resolved"):
        hours = timedelta(hours=luck.randint(1, 20))
        Review.objects.filter(pk=review.pk).update(
            resolved_at=Thread.objects.filter(pk=review.pk)
            .annotate(moment=F("updated_at") + hours)
            .values("moment")
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("team")
def test_screenshots(sign_in: SignIn, kind: str) -> None:
    """Take the pictures; a page that does not come, or complains, is a failure."""
    lena = sign_in("lena", "lead", **KINDS[kind])
    reviews.update_reviews([TENT], by=lena.user, assignee_id=lena.user.pk, status="in_review")
    memory = WorkingMemory.objects.filter(thread=None).first()
    record = ObservationalRecord.objects.live().get(thread_id=OBSERVED)
    observed = f"/admin/mastra_memory/observationalrecord/{record.pk}/change/"
    message = Message.objects.filter(thread_id=TENT).order_by("created_at", "sequence")[2]
    pages = {
        "list": f"{LIST}?all=1",
        "search": f"{LIST}?q=refund",
        "meaning": f"{LIST}?q=the+tent+broke&by=meaning",
        "filters": f"{LIST}?status=resolved&tool_errors=yes",
        "conversation": f"{LIST}{TENT}/change/",
        "tool-error": f"{LIST}sample-webhook-signature/change/",
        "delete": f"{LIST}{TENT}/delete/",
        "edit-message": f"{LIST}{TENT}/edit/message/?message={message.pk}",
        "edit-metadata": f"{LIST}{TENT}/edit/metadata/",
        "team": f"{LIST}team/",
        "exports": f"{LIST}exports/",
        "print": f"{LIST}{TENT}/print/",
        "observations": observed,
        "observation-batches": f"{observed}?view=batches",
        "observation-generations": f"{observed}?view=generations&from=1&to=2",
        "observation-events": f"{observed}?view=events",
        "observed-conversation": f"{LIST}{OBSERVED}/change/",
        "working-memory": f"/admin/mastra_memory/workingmemory/{memory.pk}/change/",  # type: ignore[union-attr]
    }
    for name, path in pages.items():
        assert lena.open(path).status == 200, path
        assert lena.width() <= KINDS[kind]["viewport"]["width"], path
        if name == "conversation" and kind != "narrow":
            lena.page.set_viewport_size({"width": 1360, "height": 1214})
            _take(lena, name, kind)
            lena.page.set_viewport_size(KINDS[kind]["viewport"])
            continue
        _take(lena, name, kind)
    lena.open_thread(TENT)
    lena.page.get_by_role("button", name="Keyboard shortcuts").click()
    _take(lena, "keys", kind)
    lena.open(f"{LIST}?all=1")
    lena.page.locator("#action-toggle").check() if kind != "narrow" else lena.page.locator(
        ".action-select"
    ).first.check()
    lena.page.get_by_label("Action:").select_option(label="Assign to…")
    lena.page.get_by_role("button", name="Go").click()
    _take(lena, "bulk", kind)
    assert lena.errors == []


def _take(person: Person, name: str, kind: str) -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    person.page.wait_for_load_state("networkidle")
    person.page.screenshot(path=DOCS / f"{name}-{kind}.png")
