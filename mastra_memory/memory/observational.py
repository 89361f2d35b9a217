"""Methods of observational memory."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from mastra_memory import tasks, threads
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import AccessDenied, FeatureDisabled, InvalidInput, Issue
from mastra_memory.memory.base import MemoryBase, make_async
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import (
    backlog,
    generations,
    history,
    log,
    operations,
    status,
)
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.operations import ObservationOutcome
from mastra_memory.observational.status import ObservationStatus
from mastra_memory.observational.work import Work
from mastra_memory.options import ObservationalMemoryOptions
from mastra_memory.types import GenerationPage


class ObservationalMemoryMethods(MemoryBase):
    """Observe, reflect, and read the observations on a thread or a resource.

    The agent's scope decides which of `thread_id` and `resource_id` is used. Methods that only
    read a record find none if that id is missing. The others raise `InvalidInput`. A record has
    generations: each reflection, which shortens the observations, and each correction by a person
    creates a new one.
    """

    def get_observational_record(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> ObservationalRecord | None:
        """Return the current generation of the record, or None if nothing was observed.

        Raises:
            FeatureDisabled: Observational memory is off.
            AccessDenied: The thread belongs to another resource.
        """
        scope = self._get_observation_scope()
        record = generations.find_live_in_scope(scope, thread_id=thread_id, resource_id=resource_id)
        self._check_owners([record] if record else [], thread_id, resource_id)
        return record

    def get_observational_status(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> ObservationStatus:
        """Return the tokens of messages and observations, and what is due.

        Raises:
            FeatureDisabled: Observational memory is off.
            InvalidInput: The id that the agent's scope needs is missing.
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
        """
        key = self._get_record_key(thread_id, resource_id)
        return status.read_status(key, self._get_observation_options())

    def get_observations(
        self,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        as_of: datetime | None = None,
    ) -> str:
        """Return the log of the current generation, or an empty text.

        Args:
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.
            as_of: Only observations of messages up to this time. The oldest batch of the log has
                no time and is always included.

        Raises:
            FeatureDisabled: Observational memory is off.
            AccessDenied: The thread belongs to another resource.
        """
        record = self.get_observational_record(thread_id=thread_id, resource_id=resource_id)
        text: str = record.active_observations if record else ""
        return text if as_of is None else log.observations_as_of(text, as_of)

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
            AccessDenied: The thread belongs to another resource.
        """
        records = generations.list_history(
            self._get_observation_scope(),
            thread_id=thread_id,
            resource_id=resource_id,
            limit=limit,
            offset=offset,
            start=start,
            end=end,
        )
        self._check_owners(records, thread_id, resource_id)
        return records

    def list_observational_generations(
        self,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        page: int = 0,
        per_page: int = 10,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> GenerationPage:
        """Return one page of the generations of the record, newest first, with their number.

        Args:
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.
            page: The number of the page, from 0.
            per_page: Generations on a page.
            start: Only generations created at this time or later.
            end: Only generations created at this time or earlier.

        Raises:
            FeatureDisabled: Observational memory is off.
            InvalidInput: `page` or `per_page` is invalid.
            AccessDenied: The thread belongs to another resource.
        """
        found = history.list_page(
            self._get_observation_scope(),
            thread_id=thread_id,
            resource_id=resource_id,
            page=page,
            per_page=per_page,
            start=start,
            end=end,
        )
        self._check_owners(found.generations, thread_id, resource_id)
        return found

    def observe(
        self, *, thread_id: str | None = None, resource_id: str | None = None, user_name: str = ""
    ) -> ObservationOutcome:
        """Observe all messages now, whatever the thresholds are, and reflect if it is due.

        This calls a model, so do not call it inside a transaction. Workers observe by themselves;
        use this when somebody waits for the result.

        Args:
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.
            user_name: The person who asked for it, for the history of the record.

        Raises:
            FeatureDisabled: Observational memory is off, or the agent is read-only.
            InvalidInput: The id that the agent's scope needs is missing.
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
            ClaimLost: Another worker took over.
            ProviderUnavailable: The model did not answer; try again later.
            ProviderRefused: The model refused the request, or its answer was not usable.
        """
        return operations.observe(self._get_work(thread_id, resource_id, user_name))

    def reflect(
        self,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        prompt: str = "",
        user_name: str = "",
    ) -> ObservationOutcome:
        """Condense the log now, whatever its size is. It calls a model, as `observe` does.

        Args:
            thread_id: The thread, in thread scope.
            resource_id: The resource, in resource scope.
            prompt: Guidance for this reflection, such as what matters most.
            user_name: The person who asked for it, for the history of the record.

        Raises:
            FeatureDisabled: Observational memory is off, or the agent is read-only.
            InvalidInput: The id that the agent's scope needs is missing.
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
            ClaimLost: Another worker took over.
            ProviderUnavailable: The model did not answer; try again later.
            ProviderRefused: The model refused the request, or its answer was not usable.
        """
        return operations.reflect(self._get_work(thread_id, resource_id, user_name), prompt=prompt)

    def finalize_observations(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> ObservationOutcome:
        """Finish what has begun, for example when a conversation ends.

        Wait for buffering, activate all chunks, then observe and reflect if the thresholds ask for
        it. It raises what `observe` raises.
        """
        return operations.finalize(self._get_work(thread_id, resource_id, ""))

    @retry_conflicts
    def clear_observations(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> bool:
        """Delete all generations of the record. The messages count as never observed again.

        Returns:
            Whether there was a record.

        Raises:
            FeatureDisabled: Observational memory is off, or the agent is read-only.
            InvalidInput: The id that the agent's scope needs is missing.
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
        """
        return generations.clear(self._get_record_key(thread_id, resource_id, writes=True)) > 0

    @retry_conflicts
    def request_observation(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> None:
        """Let a worker look for messages to observe, for example after an import.

        Raises:
            FeatureDisabled: Observational memory is off, or the agent is read-only.
            InvalidInput: The id that the agent's scope needs is missing.
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
        """
        key = self._get_record_key(thread_id, resource_id, writes=True)
        record_id = backlog.request(key, agent_id=self.agent_id)
        tasks.enqueue(tasks.observe, record_id)

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
            AccessDenied: The thread belongs to another resource.
        """
        self.get_observational_record(thread_id=thread_id, resource_id=resource_id)
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
            AccessDenied: The thread belongs to another resource.
        """
        self.get_observational_record(thread_id=thread_id, resource_id=resource_id)
        return generations.override_config(
            self._get_observation_scope(), config, thread_id=thread_id, resource_id=resource_id
        )

    def _check_owners(
        self,
        records: Sequence[ObservationalRecord],
        thread_id: str | None,
        resource_id: str | None,
    ) -> None:
        """Raise `AccessDenied` if the thread or a record belongs to another resource.

        A record of a thread has the owner of the thread, so the thread is not read again.
        """
        if any(resource_id and record.resource_id != resource_id for record in records):
            raise AccessDenied
        if not records or self._get_observation_scope() != "thread":
            self._check_thread_owner(thread_id, resource_id or None)

    def _get_observation_options(self) -> ObservationalMemoryOptions:
        if self.options.observational_memory is None:
            raise FeatureDisabled("Observational Memory is not enabled for this agent")
        return self.options.observational_memory

    def _get_observation_scope(self) -> str:
        return self._get_observation_options().scope

    def _get_work(self, thread_id: str | None, resource_id: str | None, user_name: str) -> Work:
        key = self._get_record_key(thread_id, resource_id, writes=True)
        return Work.build(key, self.options, agent_id=self.agent_id, user_name=user_name)

    def _get_record_key(
        self, thread_id: str | None, resource_id: str | None, *, writes: bool = False
    ) -> RecordKey:
        """Return the thread or resource that the agent observes.

        Raises:
            FeatureDisabled: Observational memory is off, or `writes` and the agent is read-only.
            InvalidInput: The id that the agent's scope needs is missing.
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
        """
        scope = self._get_observation_scope()
        if writes and self.options.read_only:
            raise FeatureDisabled("The memory of this agent is read-only")
        if thread_id:
            resource_id = threads.get_thread(thread_id, resource_id=resource_id).resource_id
        if scope == "thread" and not thread_id:
            reason = "is required, because this agent observes each thread on its own"
            raise InvalidInput(f"threadId {reason}", [Issue("threadId", reason)])
        if not resource_id:
            reason = "or threadId is required, because this agent observes resources"
            raise InvalidInput(f"resourceId {reason}", [Issue("resourceId", reason)])
        key = RecordKey.build(scope, thread_id=thread_id, resource_id=resource_id)
        assert key is not None
        return key

    aget_observational_record = make_async(get_observational_record)
    aget_observational_status = make_async(get_observational_status)
    aget_observations = make_async(get_observations)
    alist_observational_history = make_async(list_observational_history)
    alist_observational_generations = make_async(list_observational_generations)
    aobserve = make_async(observe)
    areflect = make_async(reflect)
    afinalize_observations = make_async(finalize_observations)
    aclear_observations = make_async(clear_observations)
    arequest_observation = make_async(request_observation)
    await_for_buffering = make_async(wait_for_buffering)
    aupdate_observational_memory_config = make_async(update_observational_memory_config)
