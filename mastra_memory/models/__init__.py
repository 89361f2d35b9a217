"""What is stored. One file a model, its queryset beside it."""

from mastra_memory.models.message import Message
from mastra_memory.models.observational_record import ObservationalRecord, ObservationChunk
from mastra_memory.models.thread import Thread
from mastra_memory.models.working_memory import Scope, WorkingMemory, WorkingMemoryRevision

__all__ = [
    "Message",
    "ObservationChunk",
    "ObservationalRecord",
    "Scope",
    "Thread",
    "WorkingMemory",
    "WorkingMemoryRevision",
]
