"""What all parts of `Memory` share: the agent, its options, async twins."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from mastra_memory import conf, threads
from mastra_memory.exceptions import AccessDenied
from mastra_memory.options import MemoryOptions
from mastra_memory.types import StoredThread

P = ParamSpec("P")
R = TypeVar("R")

OptionOverrides = Mapping[str, Any]
"""Options for one call, over the agent's own: Mastra's names or snake_case."""


def make_async(method: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """The same verb for async code, run in Django's thread for synchronous work."""
    return sync_to_async(method)


class MemoryBase:
    """One agent's options, and what several verbs need."""

    def __init__(
        self, agent_id: str | None = None, *, options: OptionOverrides | None = None
    ) -> None:
        """Options come from the settings, for the named agent, with `options` over them.

        Raises `AgentNotFound` and `MemoryNotConfigured` as `conf.get_agent_options` does.
        """
        self.agent_id = agent_id
        self.options: MemoryOptions = conf.get_agent_options(agent_id).merged(options)

    def _ensure_thread(self, thread_id: str, resource_id: str | None) -> StoredThread:
        """The thread, made where it is missing; its own id stands in for an unknown resource.

        Raises `AccessDenied` for one of another resource.
        """
        found = threads.find_thread(thread_id)
        if found is None:
            found = threads.create_thread(resource_id or thread_id, thread_id=thread_id)
        if resource_id is not None and found.resource_id != resource_id:
            raise AccessDenied
        return found
