"""Methods of observational memory."""

from collections.abc import Mapping
from datetime import datetime

from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import FeatureDisabled
from mastra_memory.memory.base import MemoryBase, make_async
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import generations


class ObservationalMemoryMethods(MemoryBase):
    """Read and configure the observations on a thread or a resource.

    The agent's scope decides which of `thread_id` and `resource_id` is used. If that id is None,
    no record is found. A record has generations: each reflection, which shortens the observations,
    and each correction by a person creates a new one.
    """

    def get_observational_record(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> ObservationalRecord | None:
        """Return the current generation of the record, or None if nothing was observed.

        Raises:
            FeatureDisabled: Observational memory is off.
        """
        return generations.find_head(
            self._get_observation_scope(), thread_id=thread_id, resource_id=resource_id
        )

    def list_observational_history(
        self,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        limit: int = 10,
        offset: int = 0,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> list[ObservationalRecord]:
        """Return generations of the record, newest first, the current one included.

        Args:
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.
            limit: The largest number of generations.
            offset: Skip this many of the newest generations.
            start: Only generations created at this time or later.
            end: Only generations created at this time or earlier.

        Raises:
            FeatureDisabled: Observational memory is off.
        """
        return generations.list_history(
            self._get_observation_scope(),
            thread_id=thread_id,
            resource_id=resource_id,
            limit=limit,
            offset=offset,
            start=start,
            end=end,
        )

    def wait_for_buffering(
        self,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        timeout: float = 30.0,
    ) -> ObservationalRecord | None:
        """Wait until no observation is being buffered, and return the current generation.

        Args:
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.
            timeout: The longest time to wait, in seconds. The record is returned in any case.

        Raises:
            FeatureDisabled: Observational memory is off.
        """
        return generations.wait_for_buffering(
            self._get_observation_scope(),
            thread_id=thread_id,
            resource_id=resource_id,
            timeout=timeout,
        )

    @retry_conflicts
    def update_observational_memory_config(
        self,
        config: Mapping[str, object],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
    ) -> ObservationalRecord:
        """Override options of observational memory for one record.

        Args:
            config: Options by Mastra's names, merged into earlier overrides.
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.

        Raises:
            FeatureDisabled: Observational memory is off.
            InvalidInput: There is no record.
        """
        return generations.override_config(
            self._get_observation_scope(), config, thread_id=thread_id, resource_id=resource_id
        )

    def _get_observation_scope(self) -> str:
        if self.options.observational_memory is None:
            raise FeatureDisabled("Observational Memory is not enabled for this agent")
        return self.options.observational_memory.scope

    aget_observational_record = make_async(get_observational_record)
    alist_observational_history = make_async(list_observational_history)
    await_for_buffering = make_async(wait_for_buffering)
    aupdate_observational_memory_config = make_async(update_observational_memory_config)
