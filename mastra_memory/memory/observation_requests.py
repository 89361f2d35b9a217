"""Methods that let a worker observe or reflect now, because a person asked for it."""

from mastra_memory import tasks
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.memory.base import make_async
from mastra_memory.memory.observational import ObservationalMemoryMethods
from mastra_memory.observational import claims, generations
from mastra_memory.observational.claims import Operation


class ObservationRequestMethods(ObservationalMemoryMethods):
    """Start work without waiting for it. The timeline of the record shows what became of it."""

    @retry_conflicts
    def start_observing(
        self, *, thread_id: str | None = None, resource_id: str | None = None, user_name: str = ""
    ) -> None:
        """Let a worker do what `observe` does.

        Args:
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.
            user_name: The person who asked for it, for the timeline of the record.

        Raises:
            FeatureDisabled: Observational memory is off, or the agent is read-only.
            InvalidInput: The id that the agent's scope needs is missing.
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
        """
        self._request_operation("observe", thread_id, resource_id, user_name)

    @retry_conflicts
    def start_reflecting(
        self, *, thread_id: str | None = None, resource_id: str | None = None, user_name: str = ""
    ) -> None:
        """Let a worker do what `reflect` does. It raises what `start_observing` raises."""
        self._request_operation("reflect", thread_id, resource_id, user_name)

    def _request_operation(
        self,
        operation: Operation,
        thread_id: str | None,
        resource_id: str | None,
        user_name: str,
    ) -> None:
        """Store a request on the live record, which is created if there is none."""
        key = self._get_record_key(thread_id, resource_id, writes=True)
        record = generations.get_or_create_live(key, agent_id=self.agent_id)
        record_id = claims.request_operation(key, operation, self.agent_id, user_name=user_name)
        tasks.enqueue(tasks.observe, record_id or record.pk)

    astart_observing = make_async(start_observing)
    astart_reflecting = make_async(start_reflecting)
