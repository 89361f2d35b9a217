"""Conversations that fork where somebody edited or asked again: one path is current."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mastra_memory.exceptions import InvalidInput


@dataclass(frozen=True, slots=True)
class TreePath:
    """One way through the tree, from the root to a leaf."""

    nodes: Sequence[str]
    shared_count: int
    """How many of its first nodes are the current path's."""
    known_count: int
    """How many of them any earlier path has, too."""
    branch_point: str
    """What tells it from the other paths, however they and it grow: empty for the path that takes
    the first way at every fork, else the last node at which it took another one."""


def iter_paths(parents: Mapping[str, str | None], current: str | None) -> Iterator[TreePath]:
    """The current path, then one for every other leaf, in the order of the mapping.

    Nodes come in the order in which they were made. A parent that is not in the mapping ends a
    path. Without a `current` node the last leaf is it; an empty tree has one empty path.
    Raises `InvalidInput` for a tree that runs in a circle.
    """
    known_parents = {n: p if p in parents else None for n, p in parents.items()}
    first_children: dict[str | None, str] = {}
    for node, parent in known_parents.items():
        first_children.setdefault(parent, node)
    _check_acyclic(known_parents)
    leaves = [node for node in parents if node not in first_children]
    end = current if current in parents else next(reversed(leaves), None)
    main = _trace_path(known_parents, end)
    yield TreePath(main, len(main), 0, _find_branch_point(main, known_parents, first_children))
    on_main, seen = set(main), set(main)
    for leaf in leaves:
        if leaf in on_main:
            continue
        nodes = _trace_path(known_parents, leaf)
        shared = sum(1 for node in nodes if node in on_main)
        known = sum(1 for node in nodes if node in seen)
        seen.update(nodes)
        yield TreePath(
            nodes, shared, known, _find_branch_point(nodes, known_parents, first_children)
        )


def _check_acyclic(parents: Mapping[str, str | None]) -> None:
    sound: set[str] = set()
    for start in parents:
        trail: set[str] = set()
        node: str | None = start
        while node is not None and node not in sound:
            if node in trail:
                raise InvalidInput("the tree of messages runs in a circle")
            trail.add(node)
            node = parents[node]
        sound |= trail


def _trace_path(parents: Mapping[str, str | None], leaf: str | None) -> list[str]:
    found: list[str] = []
    while leaf is not None:
        found.append(leaf)
        leaf = parents[leaf]
    return found[::-1]


def _find_branch_point(
    nodes: Sequence[str],
    parents: Mapping[str, str | None],
    first_children: Mapping[str | None, str],
) -> str:
    turns = (node for node in reversed(nodes) if first_children[parents[node]] != node)
    return next(turns, "")
