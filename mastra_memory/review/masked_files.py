"""Mask personal data in files that are embedded in messages."""

import codecs
from collections.abc import Mapping
from typing import Any

from mastra_memory.content import data_uris, part_types
from mastra_memory.content.redaction import Mask, keep_text, mask_json
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

HIDDEN_FILE = "[hidden]"
"""Replaces a file that cannot be masked in an export."""
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
"""Types that are not masked: no pattern can read an image."""

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def mask_file(data: bytes, mime_type: str, mask: Mask) -> bytes | None:
    """Return the masked file, or None if it is neither a text nor an image.

    Text is detected by its bytes, since the sender chooses the MIME type.
    """
    if mask is keep_text:
        return data
    decoded = _decode(data, mime_type)
    if decoded is None:
        return data if mime_type.lower() in IMAGE_TYPES else None
    text, encoding = decoded
    return mask_document(text, mask).encode(encoding, errors="replace")


def _decode(data: bytes, mime_type: str) -> tuple[str, str] | None:
    """Return the text and its encoding, or None if the data is not a text."""
    encodings = ["utf-16"] if data.startswith(_UTF16_BOMS) else ["utf-8"]
    if mime_type.lower().startswith("text/"):
        encodings.append("latin-1")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        # Binary data, or text in an encoding without a byte order mark, contains NUL.
        return None if "\x00" in text else (text, encoding)
    return None


def mask_document(text: str, mask: Mask) -> str:
    """Return the masked text. In JSON, the decoded values are masked, not their escapes."""
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[", '"')):
        try:
            value = json_text.loads(text.lstrip("\ufeff").encode())
        except InvalidInput:
            return mask(text)
        masked = mask_json(value, mask)
        return text if masked == value else json_text.dumps(masked)
    return mask(text)


def mask_embedded_files(content: Any, masked: Any, mask: Mask) -> None:
    """Mask the files embedded in `content`, and put the results into `masked`.

    `masked` is `content` after `mask_json`, which does not decode base64. It is changed in place.
    """
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if not isinstance(parts, list):
        return
    for index, part in enumerate(parts):
        if not isinstance(part, Mapping) or part.get("type") not in ("file", "image"):
            continue
        file = part_types.read_file(content, index)
        if file is None:
            continue
        data, mime_type, _name = file
        masked_data = mask_file(data, mime_type, mask)
        key = part_types.get_file_key(part)
        if masked_data is None:
            masked["parts"][index][key] = HIDDEN_FILE
        elif masked_data != data:
            masked["parts"][index][key] = data_uris.build_data_uri(masked_data, mime_type)
        else:
            masked["parts"][index][key] = part[key]
