"""`Memory`, the public Python API of the app."""

from mastra_memory.memory.clones import CloneMethods
from mastra_memory.memory.corrections import CorrectionMethods
from mastra_memory.memory.exports import ExportMethods
from mastra_memory.memory.messages import MessageMethods
from mastra_memory.memory.observation_requests import ObservationRequestMethods
from mastra_memory.memory.recall import RecallMethods
from mastra_memory.memory.recall_tool import RecallToolMethods
from mastra_memory.memory.threads import ThreadMethods
from mastra_memory.memory.turns import TurnMethods
from mastra_memory.memory.working_memory import WorkingMemoryMethods

__all__ = ["Memory"]


class Memory(
    ThreadMethods,
    MessageMethods,
    RecallMethods,
    CloneMethods,
    WorkingMemoryMethods,
    CorrectionMethods,
    ObservationRequestMethods,
    RecallToolMethods,
    TurnMethods,
    ExportMethods,
):
    """The memory of one agent.

    An instance contains only the agent's options, so creating one is cheap. Methods have the
    names of Mastra's memory, in snake_case. Most of them have an async version with the prefix `a`,
    such as `arecall`.

    `Memory` does not check permissions. Pass the `resource_id` of the user when you serve a
    request: threads of other resources then raise `AccessDenied`.
    """
