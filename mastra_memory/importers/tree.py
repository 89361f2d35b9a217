"""Conversations that fork where somebody edited or asked again: one path is current."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mastra_memory.exceptions import InvalidInput

_CIRCLE = "the tree of messages runs in a circle"


@dataclass(frozen=True, slots=True)
class Path:
    """One way through the tree, from the root to a leaf."""

    nodes: Sequence[str]
    shared: int
    """How many of its first nodes are the current path's."""
    known: int
    """How many of them any earlier path has, too."""

    @property
    def identity(self) -> str:
        """The first node that is its own: it stays when the branch grows."""
        return self.nodes[self.known]


def paths(parents: Mapping[str, str | None], current: str | None) -> Iterator[Path]:
    """The current path, then one for every other leaf, in the order of the mapping.

    A parent that is not in the mapping ends a path. Without a `current` node the last leaf is it;
    an empty tree has one empty path. Raises `InvalidInput` for a tree that runs in a circle.
    """
    inner = set(parents.values())
    leaves = [node for node in parents if node not in inner]
    if parents and not leaves:
        raise InvalidInput(_CIRCLE)
    main = _path(parents, current if current in parents else next(reversed(leaves), None))
    yield Path(main, len(main), 0)
    on_main, seen = set(main), set(main)
    for leaf in leaves:
        if leaf in on_main:
            continue
        nodes = _path(parents, leaf)
        shared = sum(1 for node in nodes if node in on_main)
        known = sum(1 for node in nodes if node in seen)
        seen.update(nodes)
        yield Path(nodes, shared, known)


def _path(parents: Mapping[str, str | None], leaf: str | None) -> list[str]:
    found: dict[str, None] = {}
    node = leaf
    while node is not None and node in parents:
        if node in found:
            raise InvalidInput(_CIRCLE)
        found[node] = None
        node = parents[node]
    return list(found)[::-1]
