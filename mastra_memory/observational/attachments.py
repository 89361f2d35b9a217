"""Choose the files of messages that the Observer sees."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from mastra_memory.content import part_types
from mastra_memory.llm import Attachment
from mastra_memory.types import StoredMessage

MAX_ATTACHMENTS = 20
MAX_ATTACHMENT_BYTES = 20 * 1024 * 1024
"""The maximum size of all files of one request together; providers refuse larger requests."""


def collect_attachments(
    messages: Sequence[StoredMessage], patterns: Sequence[str]
) -> tuple[Attachment, ...]:
    """Return the files of the messages whose MIME types match, in the order of the conversation.

    Files beyond the limits are left out. The transcript names them nevertheless.

    Args:
        messages: The messages that are observed.
        patterns: MIME types such as `image/*`.
    """
    if not patterns:
        return ()
    attachments: list[Attachment] = []
    left = MAX_ATTACHMENT_BYTES
    for attachment in _iter_files(messages, patterns):
        if len(attachments) == MAX_ATTACHMENTS:
            break
        if len(attachment.data) <= left:
            attachments.append(attachment)
            left -= len(attachment.data)
    return tuple(attachments)


def _iter_files(messages: Sequence[StoredMessage], patterns: Sequence[str]) -> Iterator[Attachment]:
    for message in messages:
        if '"file"' not in message.content_json and '"image"' not in message.content_json:
            continue  # Most messages have no file, and parsing their content would be slow.
        content = message.content
        for part in part_types.iter_parts(content):
            if isinstance(part, part_types.FilePart):
                attachment = _read_file(content, part)
                if attachment is not None and matches(attachment.mime_type, patterns):
                    yield attachment


def _read_file(content: object, part: part_types.FilePart) -> Attachment | None:
    mime_type = part.mime_type or ("image/*" if _is_image(content, part) else "")
    if part.address:
        # Other addresses are not for the public, such as those of this machine's files.
        is_public = part.address.startswith("https://")
        return Attachment(mime_type=mime_type, url=part.address) if is_public else None
    file = part_types.read_file(content, part.index)
    # Providers need the exact type of a file that is sent with its bytes.
    if file is None or "*" in mime_type:
        return None
    return Attachment(mime_type=mime_type, data=file[0])


def _is_image(content: object, part: part_types.FilePart) -> bool:
    return isinstance(content, dict) and content["parts"][part.index].get("type") == "image"


def matches(mime_type: str, patterns: Sequence[str]) -> bool:
    """Return whether a MIME type matches one of the patterns, such as `image/*`."""
    return any(fnmatchcase(mime_type.lower(), pattern.lower()) for pattern in patterns)
