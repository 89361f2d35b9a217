"""Save messages and queue the work that follows."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from mastra_memory import conf, messages, signals, tasks
from mastra_memory.db import routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.memory.base import MemoryBase
from mastra_memory.messages import validation
from mastra_memory.observational import backlog
from mastra_memory.search import tsvector
from mastra_memory.threads import titles
from mastra_memory.types import SavedMessages, StoredMessage


class MessageSaving(MemoryBase):
    """Save messages for all methods of `Memory` that store them."""

    @retry_conflicts
    def _save(self, batch: Sequence[Mapping[str, object]], *, strip_memory: bool) -> SavedMessages:
        """Validate and store a batch, then queue embeddings, titles and search words.

        `strip_memory` removes working-memory tags. Messages that keep them are not embedded.
        """
        drafts = validation.validate_messages(batch, strip_memory=strip_memory)
        generates_titles = self.options.generate_title is not None and not self.options.read_only
        models = self._embedders if strip_memory else ()
        observes = self.options.observational_memory is not None and not self.options.read_only
        # `save_messages` needs no transaction around it, which would cost two more statements.
        # Only titles and observations must be requested in the transaction of the messages.
        with routing.atomic() if generates_titles or observes else nullcontext():
            stored = messages.save_messages(
                drafts,
                embed_for=models,
                reopens_reviews=conf.app_settings().REOPEN_ON_MESSAGE,
            )
            if generates_titles:
                self._request_titles(stored)
            if observes:
                self._track_observations(stored)
        if len(stored) > tsvector.MAX_MESSAGES_ON_SAVE:
            tasks.enqueue(tasks.write_words)
        if stored and models:
            tasks.enqueue(tasks.embed_pending)
        if stored:
            signals.send(
                signals.messages_saved,
                thread_ids=sorted({message.thread_id for message in stored}),
                message_ids=[message.id for message in stored],
            )
        return SavedMessages(stored)

    @property
    def _embedders(self) -> Sequence[str]:
        """The embedding models for new messages; empty if semantic recall is off."""
        if self.options.semantic_recall is None or self.options.read_only:
            return ()
        return conf.get_embedding_models()

    def _request_titles(self, stored: Sequence[StoredMessage]) -> None:
        """Queue titles for the threads of these messages that have none."""
        options = self.options.generate_title
        if options is None or not stored:
            return
        thread_ids = {message.thread_id for message in stored}
        for thread_id in titles.request_titles(thread_ids, options, agent_id=self.agent_id):
            tasks.enqueue(tasks.generate_title, thread_id)

    def _track_observations(self, stored: Sequence[StoredMessage]) -> None:
        """Count the messages as unobserved, and queue work if a threshold is reached."""
        options = self.options.observational_memory
        if options is None or not stored:
            return
        for record_id in backlog.track_saved(stored, options, agent_id=self.agent_id):
            tasks.enqueue(tasks.observe, record_id)
