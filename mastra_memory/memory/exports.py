"""The verb of exports in the background."""

from mastra_memory import tasks
from mastra_memory.memory.base import Base


class ExportVerbs(Base):
    """Files that are made while nobody waits."""

    def start_export(self, job_id: int) -> None:
        """Make the file of an `ExportJob` in the background."""
        tasks.enqueue(tasks.make_export, job_id)
