"""A conversation as plain values for the page: days, gaps, messages, and what they hold."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mastra_memory.admin.markdown import harmless
from mastra_memory.admin.render_budget import Prose, RenderBudget
from mastra_memory.content import part_types
from mastra_memory.content.redaction import Mask
from mastra_memory.models import Message, ReviewNote
from mastra_memory.review.masked_files import PICTURES

FOLDED = 3_000
"""Longer texts are folded."""
MAX_MESSAGE_BLOCKS = 500
NAME_CHARACTERS, STATE_CHARACTERS, ERROR_CHARACTERS = 200, 40, 4_000
MAX_LINK_CHARACTERS = 5_000
GAP = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One thing in a message. `kind` says which of the other fields mean something."""

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
    """True if something is missing here; the plain text of the message has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
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
    blocks: Sequence[Block] = ()
    is_cut: bool = False
    notes: Sequence[ReviewNote] = ()
    failed: bool = False
    is_target: bool = False
    is_unread: bool = False
    matches: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """How this reader sees the conversation."""

    mask: Mask
    budget: RenderBudget
    notes: Sequence[ReviewNote] = ()
    target: str = ""
    """The message one came for."""
    read_up_to: datetime | None = None
    matching: frozenset[str] = frozenset()
    shown_paths: Sequence[str] = field(default_factory=tuple)
    """Beginnings of addresses on this site that may be shown as pictures."""


def entries(messages: Iterable[Message], lens: Lens) -> list[Entry]:
    """Days, gaps of an hour or more, and messages, in order."""
    notes: Mapping[str, list[ReviewNote]] = defaultdict(list)
    for note in lens.notes:
        if note.message_id:
            notes[note.message_id].append(note)
    made: list[Entry] = []
    last: datetime | None = None
    for message in messages:
        moment = timezone.localtime(message.created_at)
        if last is None or moment.date() != last.date():
            made.append(Entry(kind="day", day=moment.date()))
        elif moment - last >= GAP:
            made.append(Entry(kind="gap", label=spell(moment - last)))
        made.append(_entry(message, lens, notes.get(message.pk, ())))
        last = moment
    return made


def spell(span: timedelta) -> str:
    """A length of time in its largest unit."""
    minutes = int(span.total_seconds() // 60)
    if minutes < 60:
        return ngettext("%d minute", "%d minutes", minutes) % minutes
    if minutes < 48 * 60:
        return ngettext("%d hour", "%d hours", minutes // 60) % (minutes // 60)
    return ngettext("%d day", "%d days", minutes // 1440) % (minutes // 1440)


def _entry(message: Message, lens: Lens, notes: Sequence[ReviewNote]) -> Entry:
    found = part_types.read_parts(message.content, MAX_MESSAGE_BLOCKS + 1)
    blocks = _blocks(found, lens)
    read = lens.read_up_to
    return Entry(
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
        is_target=message.pk == lens.target,
        is_unread=read is not None and message.created_at > read,
        matches=message.pk in lens.matching,
    )


def _blocks(found: Sequence[part_types.Part], lens: Lens) -> list[Block]:
    made: list[Block] = []
    for piece in found[:MAX_MESSAGE_BLOCKS]:
        if lens.budget.is_spent:
            break
        made.append(_block(piece, lens))
    if len(made) < len(found):
        made.append(Block(kind="omitted", is_cut=True))
    return made


def _prose(piece: part_types.TextPart | part_types.ReasoningPart, lens: Lens) -> Block:
    shown = lens.budget.prose(piece.text, lens.mask)
    kind = "text" if isinstance(piece, part_types.TextPart) else "reasoning"
    folded = bool(shown.html) and shown.size > FOLDED
    return Block(kind=kind, prose=shown, folded=folded, size=shown.size, is_cut=shown.is_cut)


def _block(piece: part_types.Part, lens: Lens) -> Block:
    """What the page shows of one piece, masked."""
    if isinstance(piece, part_types.TextPart | part_types.ReasoningPart):
        return _prose(piece, lens)
    lens.budget.blocks -= 1
    match piece:
        case part_types.ToolCall():
            return _tool(piece, lens)
        case part_types.FilePart():
            return _file(piece, lens)
        case part_types.SourcePart(title, address):
            safe = address if _is_link(address, lens.mask) else ""
            label, _cut = lens.budget.text(title, lens.mask, NAME_CHARACTERS)
            return Block(kind="source", text=label or _("source"), address=safe)
        case part_types.UnknownPart(kind, value):
            text, is_cut = lens.budget.json(value, lens.mask)
            name, _cut = lens.budget.text(kind, lens.mask, NAME_CHARACTERS)
            return Block(kind="json", name=name, text=text, is_cut=is_cut)


def _tool(call: part_types.ToolCall, lens: Lens) -> Block:
    budget, mask = lens.budget, lens.mask
    args, args_cut = budget.json(call.args, mask)
    result, result_cut = budget.json(
        call.result if call.state == part_types.STATE_RESULT else None, mask
    )
    error, error_cut = budget.text(call.error, mask, ERROR_CHARACTERS)
    return Block(
        kind="tool",
        name=budget.text(call.name, mask, NAME_CHARACTERS)[0],
        state=harmless(call.state[:STATE_CHARACTERS]),
        args=args,
        result=result,
        text=error,
        seconds=call.seconds,
        is_cut=args_cut or result_cut or error_cut,
    )


def _file(piece: part_types.FilePart, lens: Lens) -> Block:
    """Held files come from a page of ours; links stay links, but for this site's own pictures."""
    own = piece.address.startswith(tuple(lens.shown_paths)) if piece.address else False
    is_link = own or _is_link(piece.address, lens.mask)
    held_image = not piece.address and piece.mime_type.lower() in PICTURES
    name, _cut = lens.budget.text(piece.name, lens.mask, NAME_CHARACTERS)
    address, _cut = lens.budget.text("" if is_link else piece.address, lens.mask, 300)
    return Block(
        kind="file",
        index=piece.index,
        name=name or _("file"),
        mime_type=piece.mime_type[:100],
        address=piece.address if is_link else "",
        text=address,
        size=piece.size,
        is_image=held_image or (own and piece.mime_type.startswith("image/")),
    )


def _is_link(address: str, mask: Mask) -> bool:
    """Whether it leads to the web and holds nothing that is masked."""
    if len(address) > MAX_LINK_CHARACTERS:
        return False
    return address.lower().startswith(("http://", "https://")) and mask(address) == address
