"""A conversation as plain values for the page: days, gaps, messages, and what they hold."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mastra_memory import pieces
from mastra_memory.admin.markdown import harmless, render
from mastra_memory.models import Message, ReviewNote
from mastra_memory.redaction import Mask, mask_beginning, masked_json
from mastra_memory.review.masked_files import PICTURES

FOLDED, RENDERED, SHOWN = 3_000, 20_000, 4_000
"""Longer texts are folded; still longer ones are not rendered, and begin with so much."""
LONGEST_JSON = 20_000
GAP = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One thing in a message. `kind` says which of the other fields mean something."""

    kind: str
    """text, long, reasoning, tool, file, source, json."""
    html: SafeString | str = ""
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
    notes: Sequence[ReviewNote] = ()
    failed: bool = False
    is_target: bool = False
    is_unread: bool = False
    matches: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """How this reader sees the conversation."""

    mask: Mask
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
    found = pieces.pieces_of(message.content)
    read = lens.read_up_to
    return Entry(
        kind="message",
        id=message.pk,
        sequence=message.sequence,
        role=message.role,
        role_label=str(message.get_role_display()),
        created_at=message.created_at,
        edited_at=message.edited_at,
        blocks=_blocks(found, lens),
        notes=notes,
        failed=any(isinstance(piece, pieces.ToolCall) and piece.failed for piece in found),
        is_target=message.pk == lens.target,
        is_unread=read is not None and message.created_at > read,
        matches=message.pk in lens.matching,
    )


def _blocks(found: Sequence[pieces.Piece], lens: Lens) -> list[Block]:
    made: list[Block] = []
    texts = 0
    for piece in found:
        if isinstance(piece, pieces.Text):
            made.append(_text(lens.mask(piece.text), texts))
            texts += 1
        else:
            made.append(_block(piece, lens))
    return made


Other = pieces.Reasoning | pieces.ToolCall | pieces.File | pieces.Source | pieces.Unknown


def _block(piece: Other, lens: Lens) -> Block:
    """What the page shows of one piece that is no text, masked."""
    match piece:
        case pieces.Reasoning(text):
            text = lens.mask(text)
            return Block(kind="reasoning", html=render(text[:RENDERED]), size=len(text))
        case pieces.ToolCall():
            return _tool(piece, lens.mask)
        case pieces.File():
            return _file(piece, lens)
        case pieces.Source(title, address):
            safe = address if _is_link(address, lens.mask) else ""
            return Block(kind="source", text=lens.mask(title) or _("source"), address=safe)
        case pieces.Unknown(kind, value):
            name = mask_beginning(kind, lens.mask, 200)
            return Block(kind="json", name=name, text=pretty(value, lens.mask))


def _text(text: str, index: int) -> Block:
    if len(text) > RENDERED:
        return Block(kind="long", text=harmless(text[:SHOWN]), size=len(text), index=index)
    return Block(kind="text", html=render(text), folded=len(text) > FOLDED, size=len(text))


def _tool(call: pieces.ToolCall, mask: Mask) -> Block:
    done = call.state == pieces.DONE
    return Block(
        kind="tool",
        name=harmless(mask_beginning(call.name, mask, 200)),
        state=call.state,
        args=pretty(call.args, mask),
        result=pretty(call.result, mask) if done else "",
        text=harmless(mask(call.error))[:SHOWN],
        seconds=call.seconds,
    )


def _file(piece: pieces.File, lens: Lens) -> Block:
    """Held files come from a page of ours; links stay links, but for this site's own pictures."""
    own = piece.address.startswith(tuple(lens.shown_paths)) if piece.address else False
    is_link = own or _is_link(piece.address, lens.mask)
    held_image = not piece.address and piece.mime_type.lower() in PICTURES
    return Block(
        kind="file",
        index=piece.index,
        name=harmless(lens.mask(piece.name))[:200] or _("file"),
        mime_type=piece.mime_type[:100],
        address=piece.address if is_link else "",
        text="" if is_link else harmless(mask_beginning(piece.address, lens.mask, 300)),
        size=piece.size,
        is_image=held_image or (own and piece.mime_type.startswith("image/")),
    )


def _is_link(address: str, mask: Mask) -> bool:
    """Whether it leads to the web and holds nothing that is masked."""
    return address.lower().startswith(("http://", "https://")) and mask(address) == address


def pretty(value: Any, mask: Mask, *, longest: int | None = LONGEST_JSON) -> str:
    """JSON for people; a text as it is. What is longer than `longest` is cut, and says so."""
    if value is None:
        return ""
    value = masked_json(value, mask)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    if longest is None:
        return text
    cut = f"\n… ({len(text)})" if len(text) > longest else ""
    return harmless(text[:longest]) + cut
