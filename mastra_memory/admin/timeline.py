"""Convert messages into entries for the conversation page: days, gaps and messages."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.render_budget import Prose, RenderBudget
from mastra_memory.content import part_types
from mastra_memory.content.redaction import Mask
from mastra_memory.models import Message, ReviewNote
from mastra_memory.review.masked_files import IMAGE_TYPES

MAX_UNFOLDED_CHARACTERS = 3_000
"""Longer texts are collapsed."""
MAX_MESSAGE_BLOCKS = 500
NAME_CHARACTERS, STATE_CHARACTERS, ERROR_CHARACTERS = 200, 40, 4_000
MAX_LINK_CHARACTERS = 5_000
MIN_GAP = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentBlock:
    """One block of a message. Which fields are used depends on `kind`."""

    kind: str
    """text, reasoning, tool, file, source, json, omitted."""
    prose: Prose | None = None
    text: str = ""
    folded: bool = False
    size: int = 0
    """Characters of a text, bytes of a file."""
    name: str = ""
    state: str = ""
    args: str = ""
    result: str = ""
    seconds: float | None = None
    index: int = 0
    address: str = ""
    is_image: bool = False
    mime_type: str = ""
    is_cut: bool = False
    """True if something is left out; the plain text of the message contains it."""


@dataclass(frozen=True, slots=True)
class ObservationMark:
    """How far observational memory has come with a message."""

    state: str
    """`observed`, `buffered` or `raw`."""
    label: str
    href: str
    """Address of the batch in the record; empty if the user may not see it, or there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One line of the timeline: a day, a gap, or a message."""

    kind: str
    """day, gap, message."""
    day: date | None = None
    label: str = ""
    id: str = ""
    sequence: int = 0
    role: str = ""
    role_label: str = ""
    created_at: datetime | None = None
    edited_at: datetime | None = None
    blocks: Sequence[ContentBlock] = ()
    is_cut: bool = False
    notes: Sequence[ReviewNote] = ()
    failed: bool = False
    is_target: bool = False
    is_unread: bool = False
    matches: bool = False
    marks: Sequence[ObservationMark] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerOptions:
    """How the conversation is shown to the user."""

    mask: Mask
    budget: RenderBudget
    notes: Sequence[ReviewNote] = ()
    target: str = ""
    """Id of the message to scroll to."""
    read_up_to: datetime | None = None
    matching: frozenset[str] = frozenset()
    shown_paths: Sequence[str] = field(default_factory=tuple)
    """URL prefixes on this site whose images may be shown."""
    marks: Mapping[str, Sequence[ObservationMark]] = field(default_factory=dict)
    """The marks of messages by their ids."""


def build_entries(messages: Iterable[Message], viewer: ViewerOptions) -> list[TimelineEntry]:
    """Return the messages in order, with days and with gaps of at least `MIN_GAP`."""
    notes: Mapping[str, list[ReviewNote]] = defaultdict(list)
    for note in viewer.notes:
        if note.message_id:
            notes[note.message_id].append(note)
    made: list[TimelineEntry] = []
    last: datetime | None = None
    for message in messages:
        moment = timezone.localtime(message.created_at)
        if last is None or moment.date() != last.date():
            made.append(TimelineEntry(kind="day", day=moment.date()))
        elif moment - last >= MIN_GAP:
            made.append(TimelineEntry(kind="gap", label=format_duration(moment - last)))
        made.append(_build_message_entry(message, viewer, notes.get(message.pk, ())))
        last = moment
    return made


def format_duration(span: timedelta) -> str:
    """Format a duration in its largest unit."""
    minutes = int(span.total_seconds() // 60)
    if minutes < 60:
        return ngettext("%d minute", "%d minutes", minutes) % minutes
    if minutes < 48 * 60:
        return ngettext("%d hour", "%d hours", minutes // 60) % (minutes // 60)
    return ngettext("%d day", "%d days", minutes // 1440) % (minutes // 1440)


def _build_message_entry(
    message: Message, viewer: ViewerOptions, notes: Sequence[ReviewNote]
) -> TimelineEntry:
    found = part_types.read_parts(message.content, MAX_MESSAGE_BLOCKS + 1)
    blocks = _build_blocks(found, viewer)
    read = viewer.read_up_to
    return TimelineEntry(
        kind="message",
        id=message.pk,
        sequence=message.sequence,
        role=message.role,
        role_label=str(message.get_role_display()),
        created_at=message.created_at,
        edited_at=message.edited_at,
        blocks=blocks,
        is_cut=any(block.is_cut for block in blocks),
        notes=notes,
        failed=any(isinstance(piece, part_types.ToolCall) and piece.failed for piece in found),
        is_target=message.pk == viewer.target,
        is_unread=read is not None and message.created_at > read,
        matches=message.pk in viewer.matching,
        marks=viewer.marks.get(message.pk, ()),
    )


def _build_blocks(found: Sequence[part_types.Part], viewer: ViewerOptions) -> list[ContentBlock]:
    made: list[ContentBlock] = []
    for piece in found[:MAX_MESSAGE_BLOCKS]:
        if viewer.budget.is_spent:
            break
        made.append(_build_block(piece, viewer))
    if len(made) < len(found):
        made.append(ContentBlock(kind="omitted", is_cut=True))
    return made


def _build_prose_block(
    piece: part_types.TextPart | part_types.ReasoningPart, viewer: ViewerOptions
) -> ContentBlock:
    shown = viewer.budget.render_prose(piece.text, viewer.mask)
    kind = "text" if isinstance(piece, part_types.TextPart) else "reasoning"
    folded = bool(shown.html) and shown.size > MAX_UNFOLDED_CHARACTERS
    return ContentBlock(kind=kind, prose=shown, folded=folded, size=shown.size, is_cut=shown.is_cut)


def _build_block(piece: part_types.Part, viewer: ViewerOptions) -> ContentBlock:
    """Return one piece of content as a block, masked for the user."""
    if isinstance(piece, part_types.TextPart | part_types.ReasoningPart):
        return _build_prose_block(piece, viewer)
    viewer.budget.blocks -= 1
    match piece:
        case part_types.ToolCall():
            return _build_tool_block(piece, viewer)
        case part_types.FilePart():
            return _build_file_block(piece, viewer)
        case part_types.SourcePart(title, address):
            safe = address if _is_link(address, viewer.mask) else ""
            label, _cut = viewer.budget.render_text(title, viewer.mask, NAME_CHARACTERS)
            return ContentBlock(kind="source", text=label or _("source"), address=safe)
        case part_types.UnknownPart(kind, value):
            text, is_cut = viewer.budget.render_json(value, viewer.mask)
            name, _cut = viewer.budget.render_text(kind, viewer.mask, NAME_CHARACTERS)
            return ContentBlock(kind="json", name=name, text=text, is_cut=is_cut)


def _build_tool_block(call: part_types.ToolCall, viewer: ViewerOptions) -> ContentBlock:
    budget, mask = viewer.budget, viewer.mask
    args, args_cut = budget.render_json(call.args, mask)
    result, result_cut = budget.render_json(
        call.result if call.state == part_types.STATE_RESULT else None, mask
    )
    error, error_cut = budget.render_text(call.error, mask, ERROR_CHARACTERS)
    return ContentBlock(
        kind="tool",
        name=budget.render_text(call.name, mask, NAME_CHARACTERS)[0],
        state=escape_bidi_overrides(call.state[:STATE_CHARACTERS]),
        args=args,
        result=result,
        text=error,
        seconds=call.seconds,
        is_cut=args_cut or result_cut or error_cut,
    )


def _build_file_block(piece: part_types.FilePart, viewer: ViewerOptions) -> ContentBlock:
    """Return a file as a block.

    Stored files are served by our own view. Links are not loaded, except images of this site.
    """
    own = piece.address.startswith(tuple(viewer.shown_paths)) if piece.address else False
    is_link = own or _is_link(piece.address, viewer.mask)
    is_stored_image = not piece.address and piece.mime_type.lower() in IMAGE_TYPES
    name, _cut = viewer.budget.render_text(piece.name, viewer.mask, NAME_CHARACTERS)
    address, _cut = viewer.budget.render_text("" if is_link else piece.address, viewer.mask, 300)
    return ContentBlock(
        kind="file",
        index=piece.index,
        name=name or _("file"),
        mime_type=piece.mime_type[:100],
        address=piece.address if is_link else "",
        text=address,
        size=piece.size,
        is_image=is_stored_image or (own and piece.mime_type.startswith("image/")),
    )


def _is_link(address: str, mask: Mask) -> bool:
    """Return True for a web address that contains nothing masked."""
    if len(address) > MAX_LINK_CHARACTERS:
        return False
    return address.lower().startswith(("http://", "https://")) and mask(address) == address
