"""Find the paths of a conversation that branches where a message was edited or regenerated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion

_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TreePath:
    """A path through the tree, from a root to a leaf."""

    nodes: Sequence[str]
    shared_count: int
    """The number of leading nodes that are also on the current path."""
    known_count: int
    """The number of leading nodes that are also on any earlier path."""
    branch_point: str
    """The id of the last node that is not the first child of its parent; empty if there is none. It
    identifies the path even when the path grows or other branches are added."""


def index_messages(messages: Sequence[Any], id_key: str) -> dict[str, Mapping[str, Any]]:
    """Return the messages by id. A missing or repeated id is replaced by the index."""
    indexed: dict[str, Mapping[str, Any]] = {}
    for index, value in enumerate(messages):
        message = coercion.to_mapping(value)
        message_id = coercion.to_text(message.get(id_key))
        indexed[message_id if message_id and message_id not in indexed else f"#{index}"] = message
    return indexed


def flatten_children(messages: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return messages and those nested in their `children`, each with the id of its parent."""
    flat: list[Mapping[str, Any]] = []
    waiting: list[tuple[Any, str]] = [(message, "") for message in reversed(messages)]
    while waiting:  # not recursive: a conversation may be nested hundreds of levels deep
        value, parent_id = waiting.pop()
        message = dict(coercion.to_mapping(value))
        children = message.pop("children", None)
        if parent_id:
            message["parentMessageId"] = parent_id
        flat.append(message)
        message_id = coercion.to_text(message.get("messageId"))
        if isinstance(children, list):
            waiting.extend((child, message_id) for child in reversed(children))
    return flat


def map_parents(
    messages: Mapping[str, Mapping[str, Any]], parent_key: str, time_key: str
) -> dict[str, str | None]:
    """Return the parent of each message, oldest message first.

    If no message names its parent, each message follows the one before it.
    """
    parents = {
        message_id: coercion.to_text(message.get(parent_key)) or None
        for message_id, message in messages.items()
    }
    if any(parents.values()):
        return dict(
            sorted(parents.items(), key=lambda item: _get_time(messages[item[0]], time_key))
        )
    message_ids = list(messages)
    return dict(zip(message_ids, [None, *message_ids], strict=False))


def find_newest(
    messages: Mapping[str, Mapping[str, Any]], parents: Mapping[str, str | None], time_key: str
) -> str | None:
    """Return the newest message that no other one follows; of several, the last in the list."""
    followed = set(parents.values())
    leaves = [message_id for message_id in messages if message_id not in followed]
    return max(
        reversed(leaves),  # `max` returns the first of equal values
        key=lambda message_id: _get_time(messages[message_id], time_key),
        default=None,
    )


def _get_time(message: Mapping[str, Any], time_key: str) -> datetime:
    return coercion.to_datetime(message.get(time_key)) or _EARLIEST


def iter_paths(parents: Mapping[str, str | None], current: str | None) -> Iterator[TreePath]:
    """Yield the current path, then a path for each other leaf in the order of the mapping.

    Args:
        parents: The parent of each node, in the order in which the nodes were created. A node is
            a root if its parent is None or not in the mapping.
        current: The last node of the current path; default: the last leaf. An empty tree has one
            empty path.

    Raises:
        InvalidInput: The tree contains a cycle.
    """
    known_parents = {n: p if p in parents else None for n, p in parents.items()}
    first_children: dict[str | None, str] = {}
    for node, parent in known_parents.items():
        first_children.setdefault(parent, node)
    _check_acyclic(known_parents)
    leaves = [node for node in parents if node not in first_children]
    end = current if current in parents else next(reversed(leaves), None)
    main = _trace_path(known_parents, end)
    branch_point = _find_branch_point(main, known_parents, first_children)
    yield TreePath(main, len(main), 0, branch_point)
    on_main, seen = set(main), set(main)
    for leaf in leaves:
        if leaf in on_main:
            continue
        nodes = _trace_path(known_parents, leaf)
        shared_count = sum(1 for node in nodes if node in on_main)
        known_count = sum(1 for node in nodes if node in seen)
        seen.update(nodes)
        branch_point = _find_branch_point(nodes, known_parents, first_children)
        yield TreePath(nodes, shared_count, known_count, branch_point)


def _check_acyclic(parents: Mapping[str, str | None]) -> None:
    checked: set[str] = set()  # nodes from which a root is reached
    for start in parents:
        trail: set[str] = set()
        node: str | None = start
        while node is not None and node not in checked:
            if node in trail:
                raise InvalidInput("the tree of messages contains a cycle")
            trail.add(node)
            node = parents[node]
        checked |= trail


def _trace_path(parents: Mapping[str, str | None], leaf: str | None) -> list[str]:
    """Return the nodes from the root to the leaf."""
    nodes: list[str] = []
    while leaf is not None:
        nodes.append(leaf)
        leaf = parents[leaf]
    return nodes[::-1]


def _find_branch_point(
    nodes: Sequence[str],
    parents: Mapping[str, str | None],
    first_children: Mapping[str | None, str],
) -> str:
    branches = (node for node in reversed(nodes) if first_children[parents[node]] != node)
    return next(branches, "")
