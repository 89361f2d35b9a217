"""Keep the numbering of messages right when `loaddata` stores messages with their numbers.

`loaddata` resets the sequences of primary keys only. Without this module, new messages would get
numbers below those of the loaded ones, and sort before loaded messages of the same time.
"""

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from mastra_memory.db.sequences import advance_message_sequence
from mastra_memory.models import Message


@receiver(post_save, sender=Message, dispatch_uid="mastra_memory.advance_sequence")
def advance_sequence(instance: Message, raw: bool, using: str, **_: Any) -> None:
    """Let the sequence continue after the number of a message that was loaded from a fixture."""
    if raw and isinstance(instance.sequence, int):  # not the default, which the database assigns
        advance_message_sequence(instance.sequence, using)
