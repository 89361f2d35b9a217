"""Threads of a forked conversation: the current path, and a clone for each edited branch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mastra_memory.db import times
from mastra_memory.importers import message_tree
from mastra_memory.importers.conversation import ConversationBuilder
from mastra_memory.importers.records import SourceItem, derive_id

AddMessage = Callable[[ConversationBuilder, str, bool], None]
"""Add the turn of a node to a transcript; the flag says that the node was reported before."""


@dataclass(frozen=True, slots=True)
class SourceConversation:
    """What the source says about a conversation as a whole."""

    source: str
    id: str
    resource_id: str
    title: str
    metadata: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    location: str


def build_threads(
    conversation: SourceConversation,
    parents: Mapping[str, str | None],
    current: str | None,
    add: AddMessage,
) -> Iterator[SourceItem]:
    """The items of every path. Raises `InvalidInput` as `tree.paths` does.

    A branch is a clone of the current path's thread: it has copies of the messages before the
    fork, and the origin in its metadata as `Memory.clone_thread` writes it. A path keeps its ids
    when it grows and when another one becomes current.
    """
    main: ConversationBuilder | None = None
    for path in message_tree.iter_paths(parents, current):
        identity = (conversation.source, conversation.resource_id, conversation.id)
        thread_id = (
            derive_id(*identity, path.branch_point) if path.branch_point else derive_id(*identity)
        )
        builder = ConversationBuilder(
            thread_id, conversation.resource_id, conversation.created_at, conversation.location
        )
        for place, node in enumerate(path.nodes):
            add(builder, node, place < path.known_count)
        if main is None:
            main = builder
            yield from builder.build_items(
                title=conversation.title,
                metadata=conversation.metadata,
                created_at=conversation.created_at,
                updated_at=conversation.updated_at,
            )
        elif any(builder.get_message_time(node) for node in path.nodes[path.known_count :]):
            yield from _build_branch(conversation, main, builder, path)
        else:  # nothing but instructions and the like
            yield from builder.omitted


def _build_branch(
    conversation: SourceConversation,
    main: ConversationBuilder,
    builder: ConversationBuilder,
    path: message_tree.TreePath,
) -> Iterator[SourceItem]:
    own = [builder.get_message_time(node) for node in path.nodes[path.shared_count :]]
    began = next(moment for moment in own if moment is not None)
    clone = {"sourceThreadId": main.thread_id, "clonedAt": times.format_time(began)}
    shared = [node for node in path.nodes[: path.shared_count] if main.get_message_time(node)]
    if shared:
        clone["lastMessageId"] = main.message_id(shared[-1])
    yield from builder.build_items(
        title=conversation.title,
        metadata={**conversation.metadata, "clone": clone},
        clone_source_id=main.thread_id,
        created_at=began,
        copied=frozenset(path.nodes[: path.known_count]),
    )
