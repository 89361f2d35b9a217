"""The base class of `Memory`: the agent, its options, and helpers for async methods."""

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from mastra_memory import conf, threads, working_memory
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import AccessDenied
from mastra_memory.options import MemoryOptions
from mastra_memory.types import StoredThread

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound="MemoryBase")

OptionOverrides = Mapping[str, object]
"""Options for one call, merged over the agent's own. Keys are Mastra's names or snake_case."""


def make_async(
    method: Callable[Concatenate[M, P], R],
) -> Callable[Concatenate[M, P], Coroutine[Any, Any, R]]:
    """Return an async version of a method, with the same arguments and result.

    The method runs in the thread that Django keeps for synchronous code, so that it shares the
    database connection and the transaction of other synchronous code.
    """

    @wraps(method)
    async def call_in_thread(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await sync_to_async(method)(self, *args, **kwargs)

    return call_in_thread


class MemoryBase:
    """The options of one agent, and helpers that several groups of methods use."""

    def __init__(
        self, agent_id: str | None = None, *, options: OptionOverrides | None = None
    ) -> None:
        """Read the agent's options from the settings.

        Args:
            agent_id: A key of the setting `AGENTS`; None for the setting `OPTIONS` alone.
            options: Options that override those of the agent.

        Raises:
            AgentNotFound: `AGENTS` has no such key.
            MemoryNotConfigured: The agent has no memory.
            InvalidInput: An option has an invalid value. Unknown options are ignored.
        """
        self.agent_id = agent_id
        self.options: MemoryOptions = conf.get_agent_options(agent_id).merged(options)

    @retry_conflicts
    def _get_or_create_thread(self, thread_id: str, resource_id: str | None) -> StoredThread:
        """Return the thread. Create it if it does not exist.

        If `resource_id` is None, the id of a new thread is also the id of its resource.

        Raises:
            AccessDenied: The thread belongs to another resource.
        """
        thread = threads.find_thread(thread_id)
        if thread is None:
            thread = threads.create_thread(resource_id or thread_id, thread_id=thread_id)
        if resource_id is not None and thread.resource_id != resource_id:
            raise AccessDenied
        return thread

    @staticmethod
    def _check_thread_owner(thread_id: str | None, resource_id: str | None) -> None:
        """Raise `AccessDenied` if the thread exists and belongs to another resource."""
        if not thread_id or resource_id is None:
            return
        thread = threads.find_thread(thread_id)
        if thread is not None and thread.resource_id != resource_id:
            raise AccessDenied

    def _has_resource_working_memory(self) -> bool:
        """Return True if a resource shares one working memory between its threads."""
        options = self.options.working_memory
        return options.enabled and options.scope == "resource"

    def _copy_working_memory_to_resource(
        self, resource_id: str, metadata: Mapping[str, object] | None
    ) -> None:
        """Store the `workingMemory` of a thread's metadata for the resource too."""
        content, _ = working_memory.pop_from_metadata(metadata)
        if content and self._has_resource_working_memory():
            working_memory.save_for_resource(resource_id, content, source="api")
