"""The routes of Mastra's memory API, below whatever prefix the host chooses.

Thread ids are any text: a slash in one arrives decoded, so the plain thread takes all paths but
those with a fixed ending. (A thread called `a/messages` can be listed, not addressed.)
What is asked most comes first: every route before it takes its time.
"""

from typing import Any

from django.urls import URLPattern, path, register_converter

from mastra_memory.api import errors
from mastra_memory.api.views.agents import AgentViewSet
from mastra_memory.api.views.context import ContextViewSet
from mastra_memory.api.views.messages import MessageViewSet
from mastra_memory.api.views.observational import ObservationalMemoryViewSet
from mastra_memory.api.views.search import SearchViewSet
from mastra_memory.api.views.threads import ThreadViewSet
from mastra_memory.api.views.working_memory import WorkingMemoryViewSet

app_name = "mastra_memory"

ENDINGS = (
    "/messages",
    "/clone",
    "/transfer",
    "/context",
    "/working-memory",
    "/working-memory/revisions",
    "/working-memory/restore",
)
"""What may follow a thread in a path."""


class ThreadIdConverter:
    """Any text, with slashes and line breaks."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class PlainThreadIdConverter(ThreadIdConverter):
    """The same where nothing follows: an ending needs a thread before it, else it is the thread."""

    def to_python(self, value: str) -> str:
        if value.endswith(ENDINGS) and value not in ENDINGS:
            raise ValueError("another route's")
        return value


register_converter(ThreadIdConverter, "mastra_thread_id")
register_converter(PlainThreadIdConverter, "mastra_plain_thread_id")


def _route(route: str, viewset: Any, name: str, **actions: str) -> URLPattern:
    options: dict[str, Any] = {}
    for action in actions.values():
        options |= getattr(getattr(viewset, action), "kwargs", {})
    return path(f"memory/{route}", viewset.as_view(actions, **options), name=name)


_THREAD = "threads/<mastra_thread_id:thread_id>"
_ONE = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}

_NETWORK = [
    _route("network/status", AgentViewSet, "network-status", get="status"),
    _route("network/threads", ThreadViewSet, "network-threads", get="list", post="create"),
    _route(f"network/{_THREAD}/messages", MessageViewSet, "network-messages", get="list"),
    _route(f"network/{_THREAD}", ThreadViewSet, "network-thread", **_ONE),
    _route("network/save-messages", MessageViewSet, "network-save", post="save"),
    _route("network/messages/delete", MessageViewSet, "network-delete", post="remove"),
]

urlpatterns = [
    _route("threads/<mastra_plain_thread_id:thread_id>", ThreadViewSet, "thread", **_ONE),
    _route(f"{_THREAD}/messages", MessageViewSet, "messages", get="list"),
    _route("save-messages", MessageViewSet, "save-messages", post="save"),
    _route("threads", ThreadViewSet, "threads", get="list", post="create"),
    _route(f"{_THREAD}/context", ContextViewSet, "context", get="retrieve", post="read"),
    _route(
        f"{_THREAD}/working-memory",
        WorkingMemoryViewSet,
        "working-memory",
        get="retrieve",
        post="update",
    ),
    _route("search", SearchViewSet, "search", get="list"),
    _route(f"{_THREAD}/clone", ThreadViewSet, "clone", post="clone"),
    _route(f"{_THREAD}/transfer", ThreadViewSet, "transfer", post="transfer"),
    _route(
        f"{_THREAD}/working-memory/revisions",
        WorkingMemoryViewSet,
        "working-memory-revisions",
        get="revisions",
    ),
    _route(
        f"{_THREAD}/working-memory/restore",
        WorkingMemoryViewSet,
        "restore-working-memory",
        post="restore",
    ),
    _route("status", AgentViewSet, "status", get="status"),
    _route("config", AgentViewSet, "config", get="config"),
    _route("messages/delete", MessageViewSet, "delete-messages", post="remove"),
    _route(
        "observational-memory", ObservationalMemoryViewSet, "observational-memory", get="retrieve"
    ),
    _route(
        "observational-memory/buffer-status",
        ObservationalMemoryViewSet,
        "buffer-status",
        post="buffer_status",
    ),
    *_NETWORK,
    path("memory/<mastra_thread_id:path>", errors.not_found),
]
