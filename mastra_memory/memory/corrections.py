"""Methods with which people read, trace and correct single observations."""

from mastra_memory import messages
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.memory.base import make_async
from mastra_memory.memory.observational import ObservationalMemoryMethods
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import corrections, tracing
from mastra_memory.observational.corrections import ObservationEntry
from mastra_memory.observational.tracing import MessageTrace
from mastra_memory.types import StoredMessage


class CorrectionMethods(ObservationalMemoryMethods):
    """Correct observations. Each correction opens a new generation, so each can be undone.

    An observation is named by its generation and line, such as `3.12`; see `list_observations`.
    All of these methods raise what `get_observational_status` raises, and those that write raise
    `FeatureDisabled` for a read-only agent.
    """

    def list_observations(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> list[ObservationEntry]:
        """Return the single observations of the current log, with the messages behind them."""
        return corrections.list_entries(self._get_record_key(thread_id, resource_id))

    def list_messages_of_observation(
        self, observation: str, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> list[StoredMessage]:
        """Return the messages that an observation was made of, those that still exist.

        Raises:
            InvalidInput: `observation` is not the id of an observation.
            StaleData: There is no such observation anymore.
        """
        key = self._get_record_key(thread_id, resource_id)
        entry = corrections.get_entry(key, observation)
        return messages.get_messages(entry.message_ids, resource_id=key.resource_id)

    def trace_message(
        self, message_id: str, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> MessageTrace:
        """Return whether a message is observed, and the observations that were made of it."""
        return tracing.trace_message(self._get_record_key(thread_id, resource_id), message_id)

    @retry_conflicts
    def edit_observation(
        self,
        observation: str,
        text: str,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        user_name: str = "",
    ) -> ObservationalRecord:
        """Replace the text of an observation, and return the new generation.

        Args:
            observation: The id of the observation.
            text: The new text. Without a mark and a time, it keeps the old ones.
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.
            user_name: The person who corrects it.

        Raises:
            InvalidInput: The id or the text is invalid.
            StaleData: There is no such observation anymore.
        """
        key = self._get_record_key(thread_id, resource_id, writes=True)
        return corrections.edit(key, observation, text, user_name=user_name)

    @retry_conflicts
    def pin_observation(
        self,
        observation: str,
        *,
        pinned: bool = True,
        thread_id: str | None = None,
        resource_id: str | None = None,
        user_name: str = "",
    ) -> ObservationalRecord:
        """Let reflections keep an observation word for word, or allow them to condense it again.

        Raises:
            InvalidInput: `observation` is not the id of an observation.
            StaleData: There is no such observation anymore.
        """
        key = self._get_record_key(thread_id, resource_id, writes=True)
        return corrections.pin(key, observation, pinned=pinned, user_name=user_name)

    @retry_conflicts
    def delete_observation(
        self,
        observation: str,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        user_name: str = "",
    ) -> ObservationalRecord:
        """Delete an observation with those nested below it, and return the new generation.

        Raises:
            InvalidInput: `observation` is not the id of an observation.
            StaleData: There is no such observation anymore.
        """
        key = self._get_record_key(thread_id, resource_id, writes=True)
        return corrections.delete(key, observation, user_name=user_name)

    @retry_conflicts
    def restore_observations(
        self,
        generation: int,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        user_name: str = "",
    ) -> ObservationalRecord:
        """Return to the log of an earlier generation, as a new generation.

        What was observed since then is added at its end, so that nothing is lost.

        Raises:
            InvalidInput: There is no such generation, or it is the current one.
        """
        key = self._get_record_key(thread_id, resource_id, writes=True)
        return corrections.restore(key, generation, user_name=user_name)

    alist_observations = make_async(list_observations)
    alist_messages_of_observation = make_async(list_messages_of_observation)
    atrace_message = make_async(trace_message)
    aedit_observation = make_async(edit_observation)
    apin_observation = make_async(pin_observation)
    adelete_observation = make_async(delete_observation)
    arestore_observations = make_async(restore_observations)
