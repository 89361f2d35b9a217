"""Methods that start exports."""

from mastra_memory import tasks
from mastra_memory.memory.base import MemoryBase


class ExportMethods(MemoryBase):
    """Write export files in the background."""

    def start_export(self, job_id: int) -> None:
        """Queue an export.

        Args:
            job_id: The primary key of an `ExportJob`.
        """
        tasks.enqueue(tasks.make_export, job_id)
