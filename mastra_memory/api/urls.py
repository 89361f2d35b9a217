"""The routes of Mastra's memory API, below the prefix that the host project chooses.

Routes are tried in this order, and those that are requested most come first. A thread whose id
ends like a route, such as `a/messages`, appears in lists but cannot be addressed.
"""

from django.urls import path

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

singletons = SingletonRouter()
singletons.register(f"memory/{THREAD}/context", ContextViewSet, "context")
singletons.register(f"memory/{THREAD}/working-memory", WorkingMemoryViewSet, "working-memory")
singletons.register("memory/search", SearchViewSet, "search")
singletons.register("memory/status", StatusViewSet, "status")
singletons.register("memory/config", ConfigViewSet, "config")
singletons.register("memory/observational-memory", ObservationalMemoryViewSet, "observations")
singletons.register("memory/network/status", StatusViewSet, "network-status")

collections = MemoryRouter()
collections.register(f"memory/{THREAD}/messages", ThreadMessageViewSet, "thread-message")
collections.register("memory", MessageViewSet, "message")

threads = MemoryRouter()
threads.register("memory/threads", ThreadViewSet, "thread")

network = NetworkRouter()
network.register(
    f"memory/network/{THREAD}/messages", ThreadMessageViewSet, "network-thread-message"
)
network.register("memory/network", MessageViewSet, "network-message")
network.register("memory/network/threads", ThreadViewSet, "network-thread")

urlpatterns = [
    *collections.urls,
    *singletons.urls,
    *threads.urls,
    *network.urls,
    path("memory/<mastra_thread_id:path>", errors.not_found),
]
