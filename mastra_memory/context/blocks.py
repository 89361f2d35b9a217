"""The blocks of a context. They are immutable."""

from dataclasses import dataclass
from typing import Literal

from mastra_memory.content import tokens
from mastra_memory.models import ObservationalRecord
from mastra_memory.types import StoredMessage

BlockKind = Literal[
    "working_memory", "observations", "remembered", "continuation", "history", "new"
]


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a context: text for the system prompt, or messages."""

    kind: BlockKind
    text: str = ""
    messages: tuple[StoredMessage, ...] = ()
    tokens: int = 0
    """An estimate of the tokens of the block."""


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the model should read in one turn.

    The blocks are in the order of `BlockKind`; empty ones are left out. What changes least comes
    first, so that a provider's prompt cache stays valid for as long as possible.
    """

    thread_id: str
    resource_id: str
    blocks: tuple[Block, ...]
    record: ObservationalRecord | None = None
    """The current generation of observations, or None if there are none."""

    @property
    def system_message(self) -> str | None:
        """The texts of all blocks for the system prompt, or None if there are none."""
        return "\n\n".join(block.text for block in self.blocks if block.text) or None

    @property
    def messages(self) -> tuple[StoredMessage, ...]:
        """The messages of all blocks: the continuation message, the history, then the new ones."""
        return tuple(message for block in self.blocks for message in block.messages)

    @property
    def tokens(self) -> int:
        """An estimate of the tokens of the whole context."""
        overhead = tokens.TOKENS_PER_LIST if self.messages else 0
        return overhead + sum(block.tokens for block in self.blocks)

    @property
    def has_observations(self) -> bool:
        """True if there are observations."""
        return self.record is not None and bool(self.record.active_observations)

    def block(self, kind: BlockKind) -> Block | None:
        """Return the block of this kind, or None if the context has none."""
        return next((block for block in self.blocks if block.kind == kind), None)
