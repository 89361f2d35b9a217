"""This service's engine, in this process. Import it after Django is set up."""

from benchmarks.observational_peer.fake_model import FakeModel
from benchmarks.observational_peer.scenarios import Scenario, Turn
from benchmarks.observational_peer.steps import Step, build_step
from mastra_memory import tasks
from mastra_memory.api.serializers.response_bodies import ObservationalRecordSerializer
from mastra_memory.context import Context
from mastra_memory.memory import Memory
from mastra_memory.models import Thread

SIDE = "ours"


class OurEngine:
    """Plays turns through `Memory` and the task of the worker."""

    def __init__(self, fake: FakeModel) -> None:
        """Note the server that the settings name."""
        self.fake = fake
        self.memory = Memory()

    def open(self, scenario: Scenario) -> None:
        """Use the agent of the scenario. Its threads do not exist yet."""
        self.memory = Memory(scenario.name)
        self.fake.take_calls(SIDE)

    def play(self, turn: Turn) -> Step:
        """Play a turn, and return the state after it.

        The worker runs after the message of the user, which is when an agent of Mastra looks too.
        """
        memory = self.memory
        if memory.get_thread_by_id(turn.thread_id) is None:
            memory.create_thread(turn.resource_id, thread_id=turn.thread_id, title="A thread")
        memory.save_messages([turn.user])
        record = memory.get_observational_record(
            thread_id=turn.thread_id, resource_id=turn.resource_id
        )
        if record is not None:
            tasks.observe(record.pk)
        seen = memory.context(
            turn.thread_id, resource_id=turn.resource_id, new_messages=[turn.user]
        )
        memory.save_messages([turn.answer])
        return self._describe(turn, seen)

    def reflect(self, turn: Turn) -> Step:
        """Reflect now, and return the state after it."""
        self.memory.reflect(thread_id=turn.thread_id, resource_id=turn.resource_id)
        seen = self.memory.context(turn.thread_id, resource_id=turn.resource_id)
        return self._describe(turn, seen)

    def _describe(self, turn: Turn, seen: Context) -> Step:
        status = self.memory.get_observational_status(
            thread_id=turn.thread_id, resource_id=turn.resource_id
        )
        if status.error:
            raise RuntimeError(f"The work failed: {status.error}")
        metadata = Thread.objects.get(pk=turn.thread_id).metadata or {}
        return build_step(
            system=seen.system_message or "",
            message_ids=[
                message.id for message in seen.messages if message.id != "om-continuation"
            ],
            has_continuation=seen.block("continuation") is not None,
            record=ObservationalRecordSerializer(status.record).data if status.record else {},
            status={
                "pendingTokens": status.pending_tokens,
                "unbufferedPendingTokens": status.unbuffered_tokens,
            },
            metadata=metadata.get("mastra", {}).get("om", {}),
            calls=self.fake.take_calls(SIDE),
        )
