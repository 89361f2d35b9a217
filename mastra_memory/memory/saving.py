"""Save messages and queue the work that follows."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from mastra_memory import conf, messages, signals, tasks
from mastra_memory.db import routing, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import ConcurrentUpdate
from mastra_memory.memory.base import MemoryBase
from mastra_memory.messages import validation
from mastra_memory.observational import saving
from mastra_memory.options import ObservationalMemoryOptions
from mastra_memory.search import tsvector
from mastra_memory.threads import titles
from mastra_memory.types import SavedMessages, StoredMessage

logger = logging.getLogger(__name__)


class MessageSaving(MemoryBase):
    """Save messages for all methods of `Memory` that store them."""

    def _save(self, batch: Sequence[Mapping[str, object]], *, strip_memory: bool) -> SavedMessages:
        """Validate and store a batch, then queue embeddings, titles, observations and search words.

        `strip_memory` removes working-memory tags. Messages that keep them are not embedded.
        """
        models = self._embedders if strip_memory else ()
        stored, tracked = self._store(batch, strip_memory=strip_memory, embed_for=models)
        if not stored:
            return SavedMessages(stored)
        if observational := self._observation_options:
            self._request_observations(tracked, observational)
        if len(stored) > tsvector.MAX_MESSAGES_ON_SAVE:
            tasks.enqueue(tasks.write_words)
        if models:
            tasks.enqueue(tasks.embed_pending)
        signals.send(
            signals.messages_saved,
            thread_ids=sorted({message.thread_id for message in stored}),
            message_ids=[message.id for message in stored],
        )
        return SavedMessages(stored)

    @retry_conflicts
    def _store(
        self,
        batch: Sequence[Mapping[str, object]],
        *,
        strip_memory: bool,
        embed_for: Sequence[str],
    ) -> tuple[list[StoredMessage], sql.SqlRow]:
        """Store a batch, and return the messages with what was found out about observations."""
        drafts = validation.validate_messages(batch, strip_memory=strip_memory)
        generates_titles = self.options.generate_title is not None and not self.options.read_only
        observational, extension = self._observation_options, None
        if observational:
            extension = saving.extend_save(drafts, observational, agent_id=self.agent_id)
        # A single statement needs no transaction: BEGIN and COMMIT would be two more round trips.
        # Titles are requested in the same transaction as their messages.
        with routing.atomic() if generates_titles else nullcontext():
            stored, tracked = messages.save_and_extend(
                drafts,
                extension,
                embed_for=embed_for,
                reopens_reviews=conf.app_settings().REOPEN_ON_MESSAGE,
            )
            if generates_titles:
                self._request_titles(stored)
        return stored, tracked

    @property
    def _embedders(self) -> Sequence[str]:
        """The embedding models for new messages; empty if semantic recall is off."""
        if self.options.semantic_recall is None or self.options.read_only:
            return ()
        return conf.get_embedding_models()

    @property
    def _observation_options(self) -> ObservationalMemoryOptions | None:
        """The options of observational memory; None if messages are not observed."""
        return None if self.options.read_only else self.options.observational_memory

    def _request_titles(self, stored: Sequence[StoredMessage]) -> None:
        """Queue titles for the threads of these messages that have none."""
        options = self.options.generate_title
        if options is None or not stored:
            return
        thread_ids = {message.thread_id for message in stored}
        for thread_id in titles.request_titles(thread_ids, options, agent_id=self.agent_id):
            tasks.enqueue(tasks.generate_title, thread_id)

    def _request_observations(
        self, tracked: sql.SqlRow, options: ObservationalMemoryOptions
    ) -> None:
        """Enqueue work on the records that reached a threshold."""
        try:
            record_ids = saving.finish_save(tracked, options, agent_id=self.agent_id)
        except ConcurrentUpdate:
            if routing.get_connection().in_atomic_block:
                raise
            # The messages are stored, and the next save looks at the thresholds again.
            logger.warning("A save could not request observations: too many conflicts")
            return
        for record_id in record_ids:
            tasks.enqueue(tasks.observe, record_id)
