"""The verb of exports in the background."""

from mastra_memory import tasks
from mastra_memory.memory.base import MemoryBase


class ExportMethods(MemoryBase):
    """Files that are made while nobody waits."""

    def start_export(self, job_id: int) -> None:
        """Make the file of an `ExportJob` in the background."""
        tasks.enqueue(tasks.make_export, job_id)
