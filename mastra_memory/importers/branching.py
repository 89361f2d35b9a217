"""Convert a conversation with branches: its current path becomes a thread, others become clones."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from mastra_memory.db import times
from mastra_memory.importers import message_tree
from mastra_memory.importers.conversation import ConversationBuilder
from mastra_memory.importers.records import SourceItem, derive_id

AddMessage = Callable[[ConversationBuilder, str, bool], None]
"""Adds the message of a node to a builder. The flag is True if an earlier path contains the node;
a message that is not stored must then not be reported again."""


@dataclass(frozen=True, slots=True)
class SourceConversation:
    """The fields of a conversation that all its paths share."""

    source: str
    """The name of the format."""
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
    add_message: AddMessage,
) -> Iterator[SourceItem]:
    """Yield the items of every path through the tree of messages.

    Another path than the current one becomes a clone of the current path's thread: it has copies
    of the messages before the branch, and `clone` in its metadata as `Memory.clone_thread` writes
    it. A path keeps its thread id when it grows and when another path becomes the current one.

    Args:
        conversation: What all paths share.
        parents: The parent of each message, as `message_tree.iter_paths` expects it.
        current: The last message of the current path.
        add_message: Adds the message of a node to a builder.

    Raises:
        InvalidInput: The tree contains a cycle.
    """
    paths = message_tree.iter_paths(parents, current)
    main = _build_path(conversation, next(paths), add_message)
    second = next(paths, None)
    yield from main.build_items(
        title=conversation.title,
        metadata=conversation.metadata,
        created_at=conversation.created_at,
        updated_at=conversation.updated_at,
        keep_empty=second is not None,  # the branches are clones of it
    )
    for path in chain([second] if second else [], paths):
        builder = _build_path(conversation, path, add_message)
        if any(builder.get_message_time(node) for node in path.nodes[path.known_count :]):
            yield from _build_branch(conversation, main, builder, path)
        else:  # nothing new except messages that are not stored, such as instructions
            yield from builder.omitted


def _build_path(
    conversation: SourceConversation, path: message_tree.TreePath, add_message: AddMessage
) -> ConversationBuilder:
    identity = [conversation.source, conversation.resource_id, conversation.id]
    if path.branch_point:
        identity.append(path.branch_point)
    builder = ConversationBuilder(
        derive_id(*identity),
        conversation.resource_id,
        conversation.created_at,
        conversation.location,
    )
    for index, node in enumerate(path.nodes):
        add_message(builder, node, index < path.known_count)
    return builder


def _build_branch(
    conversation: SourceConversation,
    main: ConversationBuilder,
    builder: ConversationBuilder,
    path: message_tree.TreePath,
) -> Iterator[SourceItem]:
    own_times = [builder.get_message_time(node) for node in path.nodes[path.shared_count :]]
    created_at = next(time for time in own_times if time is not None)
    clone = {"sourceThreadId": main.thread_id, "clonedAt": times.format_time(created_at)}
    shared = [node for node in path.nodes[: path.shared_count] if main.get_message_time(node)]
    if shared:
        clone["lastMessageId"] = main.get_message_id(shared[-1])
    yield from builder.build_items(
        title=conversation.title,
        metadata={**conversation.metadata, "clone": clone},
        clone_source_id=main.thread_id,
        created_at=created_at,
        copied=frozenset(path.nodes[: path.known_count]),
    )
