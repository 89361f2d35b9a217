"""The verbs of observational memory."""

from collections.abc import Mapping
from typing import Any

from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import FeatureDisabled
from mastra_memory.memory.base import MemoryBase, make_async
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import generations


class ObservationalMemoryMethods(MemoryBase):
    """What was observed about a thread or a resource."""

    def get_observational_record(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> ObservationalRecord | None:
        """The head of the lineage, in the agent's scope; None when nothing was observed.

        Raises `FeatureDisabled` when observational memory is off.
        """
        return generations.find_head(self._om_scope(), thread_id=thread_id, resource_id=resource_id)

    def list_observational_history(
        self, *, thread_id: str | None = None, resource_id: str | None = None, **choices: Any
    ) -> list[ObservationalRecord]:
        """Generations newest first, the head included; see `lineage.list_history`."""
        return generations.list_history(
            self._om_scope(), thread_id=thread_id, resource_id=resource_id, **choices
        )

    def wait_for_buffering(
        self,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        timeout: float = 30.0,
    ) -> ObservationalRecord | None:
        """Wait until no observation is being prepared, at most `timeout` seconds; then the head."""
        return generations.wait_for_buffering(
            self._om_scope(), thread_id=thread_id, resource_id=resource_id, timeout=timeout
        )

    @retry_conflicts
    def update_observational_memory_config(
        self,
        config: Mapping[str, Any],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
    ) -> ObservationalRecord:
        """Thresholds for this record alone, merged over those set before.

        Raises `InvalidInput` when there is no record.
        """
        return generations.override_config(
            self._om_scope(), config, thread_id=thread_id, resource_id=resource_id
        )

    def _om_scope(self) -> str:
        if self.options.observational_memory is None:
            raise FeatureDisabled("Observational Memory is not enabled for this agent")
        return self.options.observational_memory.scope

    aget_observational_record = make_async(get_observational_record)
    alist_observational_history = make_async(list_observational_history)
    await_for_buffering = make_async(wait_for_buffering)
    aupdate_observational_memory_config = make_async(update_observational_memory_config)
