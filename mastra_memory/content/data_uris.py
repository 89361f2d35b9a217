"""Data URIs (RFC 2397): files with their bytes in a URL."""

import binascii
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

# No two quantifiers can match the same characters, so matching takes linear time.
_HEADER = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w=.+-]+)*?)(;base64)?,", re.ASCII)
_BASE64_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]*")


@dataclass(frozen=True, slots=True)
class DataUri:
    """A parsed data URI. The data stays encoded until `decode` is called."""

    mime_type: str
    """Empty if the URI has none."""
    data: str
    """Base64 text, or percent-encoded text if `is_base64` is False."""
    is_base64: bool

    def decode(self) -> bytes | None:
        """Return the bytes, or None if the data is not valid base64."""
        return decode_base64(self.data) if self.is_base64 else unquote_to_bytes(self.data)


def parse_data_uri(text: str) -> DataUri | None:
    """Parse a data URI. Return None if the text is something else, such as a URL."""
    header = _HEADER.match(text)
    if header is None:
        return None
    return DataUri(header[1] or "", text[header.end() :], header[3] is not None)


def build_data_uri(data: bytes | str, mime_type: str) -> str:
    """Return a data URI with the bytes, or with text that is base64 already."""
    encoded = data if isinstance(data, str) else b64encode(data).decode()
    return f"data:{mime_type};base64,{encoded}"


def remove_data_uris(text: str, replacement: str = " ") -> str:
    """Return the text with `replacement` instead of each base64 data URI in it."""
    return _BASE64_URI.sub(replacement, text)


def decode_base64(text: str) -> bytes | None:
    """Return the bytes, or None if the text is not valid base64."""
    try:
        return b64decode(text)
    except (binascii.Error, ValueError):
        return None
