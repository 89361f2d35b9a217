"""Mask personal data in files that messages hold."""

import codecs
from collections.abc import Mapping
from typing import Any

from mastra_memory.content import data_uris, part_types
from mastra_memory.content.redaction import Mask, keep_text, mask_json
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

HIDDEN_FILE = "[hidden]"
"""Stands in an export for a file that cannot be masked."""
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
"""Types that are shown as they are: no pattern can read a picture."""

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def mask_file(data: bytes, mime_type: str, mask: Mask) -> bytes | None:
    """Return the file masked, or None if it is neither a text nor a picture.

    The bytes decide whether it is a text, since senders choose the type.
    """
    if mask is keep_text:
        return data
    decoded = _decode(data, mime_type)
    if decoded is None:
        return data if mime_type.lower() in IMAGE_TYPES else None
    text, encoding = decoded
    return mask_document(text, mask).encode(encoding, errors="replace")


def _decode(data: bytes, mime_type: str) -> tuple[str, str] | None:
    """Return the text and its encoding, or None if it is not a text."""
    encodings = ["utf-16"] if data.startswith(_UTF16_BOMS) else ["utf-8"]
    if mime_type.lower().startswith("text/"):
        encodings.append("latin-1")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        # A NUL says that it is binary, or a text in an encoding that is not announced.
        return None if "\x00" in text else (text, encoding)
    return None


def mask_document(text: str, mask: Mask) -> str:
    """Return the text masked. In JSON, values are masked as they read, not as they are escaped."""
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[", '"')):
        try:
            value = json_text.loads(text.lstrip("\ufeff").encode())
        except InvalidInput:
            return mask(text)
        masked = mask_json(value, mask)
        return text if masked == value else json_text.dumps(masked)
    return mask(text)


def mask_embedded_files(content: Any, masked: Any, mask: Mask) -> None:
    """Mask the files that `content` holds, in its copy `masked`.

    `masked` is `content` after `mask_json`, which cannot read what is encoded in base64.
    """
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if not isinstance(parts, list):
        return
    for index, part in enumerate(parts):
        if not isinstance(part, Mapping) or part.get("type") not in ("file", "image"):
            continue
        found = part_types.read_file(content, index)
        if found is None:
            continue
        data, mime_type, _name = found
        masked_data = mask_file(data, mime_type, mask)
        field = part_types.get_file_key(part)
        if masked_data is None:
            masked["parts"][index][field] = HIDDEN_FILE
        elif masked_data != data:
            masked["parts"][index][field] = data_uris.build_data_uri(masked_data, mime_type)
        else:
            masked["parts"][index][field] = part[field]
