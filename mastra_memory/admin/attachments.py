"""Serve the files that are stored inside messages."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from mastra_memory.admin import access
from mastra_memory.content import part_types
from mastra_memory.models import Message, Thread
from mastra_memory.review import masked_files

SANDBOX_POLICY = "default-src 'none'; sandbox"


def _get_content(thread: Thread, sequence: int) -> Any:
    found = Message.objects.filter(thread=thread, sequence=sequence).values_list("content")
    content = found.first()
    if content is None:
        raise Http404
    return content[0]


def attachment_response(
    request: HttpRequest, thread: Thread, sequence: int, index: int
) -> HttpResponse:
    """Return the file as a response: known image types inline, anything else as a download.

    Text files are masked for the user.

    Raises:
        Http404: The message has no such file.
        PermissionDenied: The file may contain personal data and cannot be masked.
    """
    found = part_types.read_file(_get_content(thread, sequence), index)
    if found is None:
        raise Http404
    held, mime_type, name = found
    mask = access.get_mask(request.user)
    data = masked_files.mask_file(held, mime_type, mask)
    if data is None:
        raise PermissionDenied(_("This file may hold personal data and cannot be masked."))
    shown = mime_type.lower() in masked_files.IMAGE_TYPES and data == held
    response = HttpResponse(data, mime_type.lower() if shown else "application/octet-stream")
    header = content_disposition_header(not shown, mask(name) or "file")
    if header:
        response["Content-Disposition"] = header
    return _set_security_headers(response)


def _set_security_headers(response: HttpResponse) -> HttpResponse:
    response["Content-Security-Policy"] = SANDBOX_POLICY
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, max-age=3600"
    return response
