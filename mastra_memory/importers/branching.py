"""Threads of a forked conversation: the current path, and a clone for each edited branch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mastra_memory.db import times
from mastra_memory.importers import message_tree
from mastra_memory.importers.conversation import Transcript
from mastra_memory.importers.records import Item, derived_id

Add = Callable[[Transcript, str, bool], None]
"""Add the turn of a node to a transcript; the flag says that the node was reported before."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the source says about a conversation as a whole."""

    source: str
    id: str
    resource_id: str
    title: str
    metadata: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    where: str


def threads_of(
    conversation: Conversation,
    parents: Mapping[str, str | None],
    current: str | None,
    add: Add,
) -> Iterator[Item]:
    """The items of every path. Raises `InvalidInput` as `tree.paths` does.

    A branch is a clone of the current path's thread: it has copies of the messages before the
    fork, and the origin in its metadata as `Memory.clone_thread` writes it. A path keeps its ids
    when it grows and when another one becomes current.
    """
    main: Transcript | None = None
    for path in message_tree.paths(parents, current):
        identity = (conversation.source, conversation.resource_id, conversation.id)
        thread_id = derived_id(*identity, path.line) if path.line else derived_id(*identity)
        transcript = Transcript(
            thread_id, conversation.resource_id, conversation.created_at, conversation.where
        )
        for place, node in enumerate(path.nodes):
            add(transcript, node, place < path.known)
        if main is None:
            main = transcript
            yield from transcript.items(
                title=conversation.title,
                metadata=conversation.metadata,
                created_at=conversation.created_at,
                updated_at=conversation.updated_at,
            )
        elif any(transcript.moment_of(node) for node in path.nodes[path.known :]):
            yield from _branch(conversation, main, transcript, path)
        else:  # nothing but instructions and the like
            yield from transcript.left_out


def _branch(
    conversation: Conversation, main: Transcript, transcript: Transcript, path: message_tree.Path
) -> Iterator[Item]:
    own = [transcript.moment_of(node) for node in path.nodes[path.shared :]]
    began = next(moment for moment in own if moment is not None)
    clone = {"sourceThreadId": main.thread_id, "clonedAt": times.to_wire(began)}
    shared = [node for node in path.nodes[: path.shared] if main.moment_of(node)]
    if shared:
        clone["lastMessageId"] = main.message_id(shared[-1])
    yield from transcript.items(
        title=conversation.title,
        metadata={**conversation.metadata, "clone": clone},
        clone_source_id=main.thread_id,
        created_at=began,
        copied=frozenset(path.nodes[: path.known]),
    )
