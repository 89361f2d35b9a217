"""Saving messages, and deciding what happens later because of it."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from django.db import transaction

from mastra_memory import conf, messages, signals, tasks
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.memory.base import MemoryBase
from mastra_memory.messages import validation
from mastra_memory.search import tsvector
from mastra_memory.threads import titles
from mastra_memory.types import SavedMessages, StoredMessage


class MessageSaving(MemoryBase):
    """What every verb that stores messages goes through."""

    @retry_conflicts
    def _save(self, batch: Sequence[Mapping[str, Any]], *, strip: bool) -> SavedMessages:
        """Store a batch and note what it wants later: vectors, titles."""
        ready = validation.validate_messages(batch, strip=strip)
        wants_titles = self.options.generate_title is not None and not self.options.read_only
        models = self._embedders if strip else ()
        with transaction.atomic() if wants_titles else nullcontext():
            stored = messages.save_messages(ready, embed_for=models)
            if wants_titles:
                self._want_titles(stored)
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
        """The models for which what is saved now is embedded, soon after; none without recall."""
        if self.options.semantic_recall is None or self.options.read_only:
            return ()
        return conf.get_embedding_models()

    def _want_titles(self, stored: Sequence[StoredMessage]) -> None:
        """Threads without a title get one later, where the agent's options say so."""
        wanted = self.options.generate_title
        if wanted is None or not stored:
            return
        thread_ids = {message.thread_id for message in stored}
        for thread_id in titles.request_titles(thread_ids, wanted, agent_id=self.agent_id):
            tasks.enqueue(tasks.generate_title, thread_id)
