"""The routes of Mastra's memory API, below the prefix that the host project chooses.

Routes are tried in this order. Those that are requested most come first, and others are grouped by
the beginning of their path, because Django matches one regular expression for each route that it
tries. A thread whose id ends like a route, such as `a/messages`, appears in lists but cannot be
addressed.
"""

from django.urls import include, path

from mastra_memory.api import errors
from mastra_memory.api.routers import THREAD, MemoryRouter, NetworkRouter, SingletonRouter
from mastra_memory.api.views.agents import ConfigViewSet, StatusViewSet
from mastra_memory.api.views.context import ContextViewSet
from mastra_memory.api.views.messages import MessageViewSet, ThreadMessageViewSet
from mastra_memory.api.views.observational import ObservationalMemoryViewSet
from mastra_memory.api.views.search import SearchViewSet
from mastra_memory.api.views.threads import ThreadViewSet
from mastra_memory.api.views.working_memory import WorkingMemoryViewSet

app_name = "mastra_memory"

thread_messages = MemoryRouter()
thread_messages.register(f"{THREAD}/messages", ThreadMessageViewSet, "thread-message")

thread_singletons = SingletonRouter()
thread_singletons.register(f"{THREAD}/context", ContextViewSet, "context")
thread_singletons.register(f"{THREAD}/working-memory", WorkingMemoryViewSet, "working-memory")

threads = MemoryRouter()
threads.register("memory/threads", ThreadViewSet, "thread")

messages = MemoryRouter()
messages.register("memory", MessageViewSet, "message")

singletons = SingletonRouter()
singletons.register("memory/search", SearchViewSet, "search")
singletons.register("memory/status", StatusViewSet, "status")
singletons.register("memory/config", ConfigViewSet, "config")
singletons.register("memory/observational-memory", ObservationalMemoryViewSet, "observations")

# Mastra's client also requests these routes under `memory/network/`.
network = NetworkRouter()
network.register(f"threads/{THREAD}/messages", ThreadMessageViewSet, "network-thread-message")
network.register("", MessageViewSet, "network-message")
network.register("threads", ThreadViewSet, "network-thread")

network_singletons = SingletonRouter()
network_singletons.register("status", StatusViewSet, "network-status")

urlpatterns = [
    # Parts of a thread, before the thread itself: its id matches every longer path as well.
    path("memory/threads/", include([*thread_messages.urls, *thread_singletons.urls])),
    *threads.urls,
    *messages.urls,
    *singletons.urls,
    path("memory/network/", include([*network_singletons.urls, *network.urls])),
    path("memory/<mastra_thread_id:path>", errors.not_found),
]
