"""One row of everything, and an address for every page of our admin: none can be forgotten."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import URLPattern, reverse

from mastra_memory.memory import Memory
from mastra_memory.models import (
    Criterion,
    EmbeddingRequest,
    ExportJob,
    Message,
    MessageObservation,
    ModelUsage,
    ObservationalRecord,
    ObservationEvent,
    Review,
    ReviewNote,
    Tag,
    Thread,
    ThreadTag,
    WorkingMemory,
)
from mastra_memory.review import exports
from mastra_memory.types import StoredThread
from mastra_memory.working_memory import save_for_thread
from tests.support.factories import START, make_chunk, make_record, make_thread, save

SECRETS = ["zoe@example.com", "+48 601 234 567", "4111 1111 1111 1111"]
WORDS = " and ".join(SECRETS)
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def patterns() -> Iterator[tuple[str, URLPattern]]:
    """Every page of our admins by the name of its address; Django's nameless redirect aside."""
    for model, model_admin in admin.site._registry.items():
        if model._meta.app_label == "mastra_memory":
            for pattern in model_admin.get_urls():
                if pattern.name:
                    yield pattern.name.removeprefix("mastra_memory_"), pattern


PAGES = sorted({name for name, _pattern in patterns()})


def make_everything() -> None:
    """A conversation of bob with one of everything, personal data in each text."""
    thread = make_thread("bob", "secret", title=f"About {WORDS}", metadata={"mail": WORDS})
    call = {"state": "output-error", "toolName": "look", "args": {"q": WORDS}, "errorText": WORDS}
    parts = [
        {"type": "text", "text": f"Reach me: {WORDS}"},
        {"type": "reasoning", "reasoning": WORDS},
        {"type": "tool-invocation", "toolInvocation": call},
        {"type": "file", "mimeType": "image/png", "data": PIXEL, "filename": f"{WORDS}.png"},
    ]
    content = {"format": 2, "parts": parts}
    save([_message("m1", content), _message("m2", {"format": 2, "parts": parts[:1]})])
    memory = Memory(options={"semanticRecall": True})
    memory.save_messages([_message("m3", {"format": 2, "parts": parts[:1]})])
    EmbeddingRequest.objects.update(error=f"cannot read {WORDS}", failed_at=START)
    save_for_thread("secret", "bob", f"likes {WORDS}", source="api")
    _make_observations(thread)
    ModelUsage.objects.create(
        thread_id="secret", resource_id="bob", purpose="title", model="x/y", input_tokens=1
    )
    author = User.objects.create(username="author")
    for message_id in (None, "m1"):
        ReviewNote.objects.create(
            thread_id="secret", text=WORDS, author_id=str(author.pk), message_id=message_id
        )
    Review.objects.create(thread_id="secret", status="flagged", assignee_id=str(author.pk))
    ThreadTag.objects.create(thread_id="secret", tag=Tag.objects.create(name="late"))
    Criterion.objects.create(name="Tone", kind="yes_no")


def _make_observations(thread: StoredThread) -> None:
    """A record with an observation, a batch in the log, a buffered one, and events."""
    line = f"* 🔴 (10:00) Reach: {WORDS}"
    record = make_record(
        thread,
        active_observations=f"{WORDS}\n{line}",
        buffered_reflection=WORDS,
        error=f"refused {WORDS}",
        attempts=1,
    )
    chunk = make_chunk(
        record, observations=line, message_ids=["m1"], activated_at=START, hints={"task": WORDS}
    )
    make_chunk(record, 1, observations=WORDS, message_ids=["m2"])
    MessageObservation.objects.create(
        message_id="m1", scope="thread", thread_id="secret", resource_id="bob", chunk=chunk
    )
    edit = {"action": "edit", "before": WORDS, "after": f"not {WORDS}"}
    failure = {"state": "failed", "error": WORDS, "data": {"observations": WORDS}}
    for fields in ({"operation": "observation", **failure}, {"operation": "edit", "data": edit}):
        ended = {"state": "done", "finished_at": START, **fields}
        ObservationEvent.objects.create(record=record, thread_id="secret", **ended)


def _message(pk: str, content: Any) -> dict[str, Any]:
    owner = {"threadId": "secret", "resourceId": "bob"}
    return {"id": pk, "role": "user", "content": content, **owner}


def own_export(owner: User) -> ExportJob:
    """Create a finished export of the user, masked for the user."""
    masked = not owner.has_perm("mastra_memory.view_personal_data")
    job = ExportJob.objects.create(
        owner_id=str(owner.pk), format="markdown", thread_ids=["secret"], masked=masked
    )
    exports.run_export(job.pk)
    return ExportJob.objects.get(pk=job.pk)


ROWS: dict[str, Any] = {
    "embeddingrequest": EmbeddingRequest,
    "message": Message,
    "modelusage": ModelUsage,
    "observationalrecord": ObservationalRecord,
    "tag": Tag,
    "criterion": Criterion,
    "thread": Thread,
    "workingmemory": WorkingMemory,
}


def address_of(name: str, export: ExportJob | None = None) -> str:
    """Where a page is, with the rows of `make_everything`. Fails for a page that is not known."""
    model, _, page = name.partition("_")
    route = f"admin:mastra_memory_{name}"
    sequence = Message.objects.get(pk="m1").sequence
    about: dict[str, dict[str, Any]] = {
        "export": {"pk": export.pk if export else 0},
        "do": {"object_id": "secret", "verb": "review"},
        "edit": {"object_id": "secret", "what": "title"},
        "memory": {"object_id": "secret", "pk": WorkingMemory.objects.get().pk},
        "file": {"object_id": "secret", "sequence": sequence, "index": 3},
        "text": {"object_id": "secret", "what": "message", "key": sequence},
    }
    if page in ("changelist", "add", "team", "views", "exports", "next"):
        return reverse(route)
    if page in about and model == "thread":
        return reverse(route, kwargs=about[page])
    if name == "observationalrecord_do":
        record = ObservationalRecord.objects.get()
        return reverse(route, kwargs={"object_id": record.pk, "verb": "pin"})
    if model == "message":
        return reverse(route, kwargs={"object_id": "m1"})
    return reverse(route, kwargs={"object_id": ROWS[model].objects.get().pk})


QUERIES = {
    "thread_changelist": ["?all=1", "?q=reach", "?q=example.com", "?q=late", "?status=flagged"],
    "thread_change": ["?part=1", "?at=m1", "?find=reach"],
    "thread_exports": ["?part=1"],
    "message_changelist": ["?q=reach", "?q=example.com", "?q=m1", "?error=yes", "?tool_call=no"],
    "observationalrecord_change": [
        "?line=1",
        "?view=batches",
        "?view=batches&message=m1",
        "?view=generations&from=0&to=1",
        "?view=events",
    ],
    "workingmemory_changelist": ["?q=secret"],
    "modelusage_changelist": ["?q=secret"],
}
"""Yield the requests to make for a page in addition to a plain GET."""


def addresses_of(name: str, export: ExportJob | None = None) -> list[str]:
    """A page in every way it can be asked for."""
    address = address_of(name, export)
    return [address, *(address + query for query in QUERIES.get(name, ()))]
