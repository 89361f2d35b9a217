"""Show an entry of the history as removed and added lines."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.admin.working_memory_panel import DiffLine, diff_texts
from mastra_memory.content import message_text
from mastra_memory.content.redaction import Mask, keep_text, mask_beginning
from mastra_memory.models import Review, ThreadChange
from mastra_memory.review import history

MAX_LINES = 40
MAX_SIDE_CHARACTERS = 9_000
MAX_MESSAGES = 200
"""At most this many messages of one deletion are shown."""
REVIEW_FIELDS = {"status", "priority", "assignee_id", "tag"}


def diff_change(
    change: ThreadChange, mask: Mask, names: Mapping[str, str], budget: RenderBudget
) -> Sequence[DiffLine]:
    """Return removed and added lines, masked for the user.

    `names` maps the ids from `collect_user_ids` to user names.
    """
    if budget.seconds <= 0 or budget.is_spent:
        return [DiffLine("same", _("This page has too much text to show this comparison."))]
    if history.TOO_LONG_PLACEHOLDER in (change.before, change.after):
        return [DiffLine("same", _("Too long to compare."))]
    sides = [_side_as_text(value, mask, names, budget) for value in (change.before, change.after)]
    before, after = (side[:MAX_SIDE_CHARACTERS] for side in sides)
    lines = diff_texts(before, after, keep_text, budget)
    if len(lines) <= MAX_LINES:
        return lines
    return [*lines[:MAX_LINES], DiffLine("skip", "⋯")]


def collect_user_ids(changes: Collection[ThreadChange]) -> set[str]:
    """Return the ids of the authors, and of assignees before or after one of the changes."""
    sides = [side for change in changes for side in (change.before, change.after)]
    assigned = [side.get("assignee_id") for side in sides if isinstance(side, dict)]
    authors = [change.author_id for change in changes]
    return {str(user_id) for user_id in [*assigned, *authors] if user_id}


def _side_as_text(value: Any, mask: Mask, names: Mapping[str, str], budget: RenderBudget) -> str:
    """Return one side of a change as text."""
    if isinstance(value, dict) and value and value.keys() <= REVIEW_FIELDS:
        return "\n".join(_review_field_as_text(name, part, names) for name, part in value.items())
    if _is_content(value):
        return _content_as_text(value, mask, budget)
    if isinstance(value, list) and value and all(_is_message(part) for part in value):
        shown = value[:MAX_MESSAGES]
        return "\n".join(
            f"{part.get('role', '')}: {_content_as_text(part['content'], mask, budget)}"
            for part in shown
        )
    return budget.render_json(value, mask)[0]


def _content_as_text(content: Any, mask: Mask, budget: RenderBudget) -> str:
    text = mask_beginning(message_text.get_editable_text(content), mask, MAX_SIDE_CHARACTERS)
    return text or budget.render_json(content, mask)[0]


def _review_field_as_text(name: str, value: Any, names: Mapping[str, str]) -> str:
    match name:
        case "status":
            label, shown = _("status"), dict(Review.Status.choices).get(value, value)
        case "priority":
            label, shown = _("priority"), dict(Review.Priority.choices).get(value, value)
        case "assignee_id":
            label, shown = _("assignee"), names.get(str(value), "–") if value else _("unassigned")
        case _:
            label, shown = _("tag"), value
    return f"{label}: {shown}"


def _is_content(value: Any) -> bool:
    return isinstance(value, dict) and "parts" in value


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and _is_content(value.get("content"))
