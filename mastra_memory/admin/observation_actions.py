"""Handlers of the forms of a record: observe, reflect, and correct observations.

Each correction names the generation that the user has seen. If there is a newer one, nothing is
changed and the user is told so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext as _

from mastra_memory.admin import access
from mastra_memory.admin.observation_log import find_hidden_threads
from mastra_memory.admin.params import read_integer
from mastra_memory.db import locking, routing
from mastra_memory.exceptions import FeatureDisabled, InvalidInput, StaleData
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, Scope, Thread, ThreadChange
from mastra_memory.review import history, observations
from mastra_memory.review.history import ChangeInput
from mastra_memory.review.observations import LogLine

MAX_GENERATION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What an action did: the message to show, and the record and line to show it on."""

    message: str
    record_id: str
    line: int | None = None


def run_action(request: HttpRequest, record: ObservationalRecord, verb: str) -> ActionResult:
    """Run an action for a user who may edit transcripts.

    Raises:
        PermissionDenied: The user may not do it.
        StaleData: There is a newer generation than the one that the user has seen.
        InvalidInput: The form has invalid values.
        FeatureDisabled: The agent of the record does not observe.
    """
    if not access.has_permission(request.user, "edit_transcript"):
        raise PermissionDenied
    if verb in REQUESTS:
        return REQUESTS[verb](request, record)
    return _correct(request, record, verb)


def _start_observing(request: HttpRequest, record: ObservationalRecord) -> ActionResult:
    live = _find_idle_record(record, is_reflection=False)
    _get_agent_memory(live).start_observing(user_name=request.user.get_username(), **_key(live))
    _write_log(request, live, "Asked for observation.")
    message = _("Observation was requested. Reload the page in a moment to see what it did.")
    return ActionResult(message, live.pk)


def _start_reflecting(request: HttpRequest, record: ObservationalRecord) -> ActionResult:
    live = _find_idle_record(record, is_reflection=True)
    _get_agent_memory(live).start_reflecting(user_name=request.user.get_username(), **_key(live))
    _write_log(request, live, "Asked for reflection.")
    message = _("Reflection was requested. Reload the page in a moment to see what it did.")
    return ActionResult(message, live.pk)


REQUESTS: Mapping[str, Callable[[HttpRequest, ObservationalRecord], ActionResult]] = {
    "observe": _start_observing,
    "reflect": _start_reflecting,
}
CORRECTIONS = ("pin", "unpin", "edit", "delete", "restore")
VERBS = frozenset([*REQUESTS, *CORRECTIONS])


def _find_idle_record(record: ObservationalRecord, *, is_reflection: bool) -> ObservationalRecord:
    """Return the live generation, unless a worker is doing the same work already."""
    live = observations.list_generations(record).filter(superseded_by=None).first()
    if live is None:
        raise StaleData(_("The record was deleted."))
    if is_reflection:
        busy = live.is_reflecting or live.is_buffering_reflection
    else:
        busy = live.is_observing or live.is_buffering_observation
    if busy:
        raise StaleData(_("A worker is at work on these observations. Try again in a moment."))
    return live


def _get_agent_memory(record: ObservationalRecord) -> Memory:
    """Return the memory of the agent that observes the record."""
    if observations.find_status(record) is None:
        raise FeatureDisabled(_("The agent of this record does not use observational memory."))
    return Memory(record.agent_id)


def _key(record: ObservationalRecord) -> dict[str, Any]:
    return {"thread_id": record.thread_id, "resource_id": record.resource_id}


@locking.retry_conflicts
@routing.atomic
def _correct(request: HttpRequest, record: ObservationalRecord, verb: str) -> ActionResult:
    """Change the log and record who did it, in one transaction."""
    live = _lock_live(request, record)
    if verb == "restore":
        return _restore(request, live)
    line = _find_line(request, live)
    address = f"{live.generation_count}.{line.number}"
    memory, who = _get_editing_memory(live), request.user.get_username()
    before, after = line.text, ""
    if verb == "edit":
        after = _read_new_text(request, line)
        new = memory.edit_observation(address, after, user_name=who, **_key(live))
        message = _("The observation was changed.")
    elif verb == "delete":
        new = memory.delete_observation(address, user_name=who, **_key(live))
        message = _("The observation was deleted.")
    else:
        after = before
        new = memory.pin_observation(address, pinned=verb == "pin", user_name=who, **_key(live))
        message = (
            _("The observation was pinned: reflections keep it word for word.")
            if verb == "pin"
            else _("The observation is not pinned any more.")
        )
    _record_change(request, new, {"action": verb, "text": before}, {"action": verb, "text": after})
    _write_log(request, new, f"{verb} {address}")
    return ActionResult(message, new.pk, None if verb == "delete" else line.number)


def _lock_live(request: HttpRequest, record: ObservationalRecord) -> ObservationalRecord:
    """Lock and return the live generation, which must be the one that the user has seen.

    Threads are locked before records; see `db.locking`.
    """
    if record.thread_id is not None:
        locking.lock_threads([record.thread_id])
    rows = observations.list_generations(record).filter(superseded_by=None)
    live = rows.select_for_update(no_key=True).first()
    seen = read_integer(request.POST.get("seen"), maximum=MAX_GENERATION)
    if live is None or live.generation_count != seen:
        raise StaleData(
            _("The observations were changed after you opened the page. Nothing was saved.")
        )
    return live


def _find_line(request: HttpRequest, live: ObservationalRecord) -> LogLine:
    """Return the observation that the form names, if the user may see it."""
    number = read_integer(request.POST.get("line"))
    hidden = find_hidden_threads(request, live)
    for line in observations.read_log(live.active_observations, hidden):
        if line.number == number and line.item is not None:
            return line
    raise InvalidInput(_("This observation does not exist."))


def _read_new_text(request: HttpRequest, line: LogLine) -> str:
    if access.get_mask(request.user)(line.text) != line.text:
        # The form contained masked text. Saving it would replace the data by the mask.
        raise PermissionDenied(_("Masked text cannot be edited."))
    return request.POST.get("text", "")


def _get_editing_memory(record: ObservationalRecord) -> Memory:
    """Return a memory in the scope of the record, whatever its agent does today."""
    return Memory(options={"observationalMemory": {"scope": record.scope}, "readOnly": False})


def _restore(request: HttpRequest, live: ObservationalRecord) -> ActionResult:
    number = read_integer(request.POST.get("generation"), maximum=MAX_GENERATION)
    if number is None or number >= live.generation_count:
        raise InvalidInput(_("This generation does not exist."))
    new = _get_editing_memory(live).restore_observations(
        number, user_name=request.user.get_username(), **_key(live)
    )
    _record_change(
        request,
        new,
        {"action": "restore", "generation": live.generation_count},
        {"action": "restore", "generation": number},
    )
    _write_log(request, new, f"restore generation {number}")
    message = _("The observations of generation %(number)d were restored as a new generation.")
    return ActionResult(message % {"number": number}, new.pk)


def _record_change(
    request: HttpRequest, record: ObservationalRecord, before: Any, after: Any
) -> None:
    """Add the change to the history of the thread, or of the newest thread of the resource."""
    if record.scope == Scope.THREAD:
        thread_id = record.thread_id
    else:
        threads = Thread.objects.filter(resource_id=record.resource_id)
        newest = threads.order_by("-updated_at", "-pk").values_list("pk", flat=True)
        thread_id = newest.first()
    if thread_id is not None:
        kind = ThreadChange.Kind.OBSERVATIONS
        change = ChangeInput(thread_id=str(thread_id), kind=kind, before=before, after=after)
        history.record_changes(request.user, change)


def _write_log(request: HttpRequest, record: ObservationalRecord, message: str) -> None:
    """Add a line to Django's log. It is shown unmasked, so it contains no text of the log."""
    user: Any = request.user
    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(ObservationalRecord),
        object_id=record.pk,
        object_repr=str(record)[:200],
        action_flag=CHANGE,
        change_message=message,
    )
