"""The WSGI application that web servers load."""

import gc
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse

from project.cores import OneCore

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

GARBAGE = (20_000, 20, 20)
"""So many new objects, and so many rounds, before garbage is looked for. With Python's own 700 a
request that reads a hundred messages looks ten times and finds nothing: what is in no cycle goes at
once anyway."""
BYTES = 16 * 1024 * 1024
"""After so many bytes taken and sent it is looked for in any case: a request is a circle that holds
its body and its answer, and few objects may hold much."""

_bytes = 0
_core = OneCore()

django = get_wsgi_application()
gc.collect()
gc.freeze()  # what is loaded now stays
gc.set_threshold(*GARBAGE)


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """Answer a request.

    What is whole goes out as a list, which Granian sends at once; it asks any other answer for one
    piece after another, each time in a thread of Python's.
    """
    _core.join()
    answer = django(environ, start_response)
    if not isinstance(answer, HttpResponse):
        return answer
    answer.close()
    content = answer.content
    del answer
    taken = str(environ.get("CONTENT_LENGTH") or "")
    _look_for_garbage((int(taken) if taken.isdecimal() else 0) + len(content))
    return [content]


def _look_for_garbage(size: int) -> None:
    global _bytes
    _bytes += size
    if _bytes > BYTES:
        _bytes = 0
        gc.collect()
