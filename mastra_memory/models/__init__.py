"""The models, one file each, with their querysets."""

from mastra_memory.models.embedding import EmbeddingRequest, MessageEmbedding
from mastra_memory.models.export_job import ExportJob
from mastra_memory.models.message import Message
from mastra_memory.models.message_observation import MessageObservation
from mastra_memory.models.model_usage import ModelUsage
from mastra_memory.models.observation_chunk import ObservationChunk
from mastra_memory.models.observation_event import ObservationEvent
from mastra_memory.models.observational_record import ObservationalRecord
from mastra_memory.models.review import Review, ReviewNote, Tag, ThreadTag, Visit
from mastra_memory.models.rubric import Criterion, Score
from mastra_memory.models.saved_view import DefaultView, SavedView
from mastra_memory.models.thread import Thread
from mastra_memory.models.thread_change import ThreadChange
from mastra_memory.models.working_memory import Scope, WorkingMemory, WorkingMemoryRevision

__all__ = [
    "Criterion",
    "DefaultView",
    "EmbeddingRequest",
    "ExportJob",
    "Message",
    "MessageEmbedding",
    "MessageObservation",
    "ModelUsage",
    "ObservationChunk",
    "ObservationEvent",
    "ObservationalRecord",
    "Review",
    "ReviewNote",
    "SavedView",
    "Scope",
    "Score",
    "Tag",
    "Thread",
    "ThreadChange",
    "ThreadTag",
    "Visit",
    "WorkingMemory",
    "WorkingMemoryRevision",
]
