"""Tests of finding the paths of a conversation with branches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import message_tree

Parents = dict[str, str | None]


def walk(parents: Parents, current: str | None = None) -> list[tuple[str, int, int]]:
    return [
        ("".join(p.nodes), p.shared_count, p.known_count)
        for p in message_tree.iter_paths(parents, current)
    ]


def lines(parents: Parents, current: str | None = None) -> dict[str, str]:
    return {p.nodes[-1]: p.branch_point for p in message_tree.iter_paths(parents, current)}


def test_iter_paths__current_path_comes_first() -> None:
    parents: Parents = {"a": None, "b": "a", "c": "b", "x": "b", "y": "x", "z": "x"}
    assert walk(parents, "y") == [("abxy", 4, 0), ("abc", 2, 2), ("abxz", 3, 3)]
    assert walk(parents, "c") == [("abc", 3, 0), ("abxy", 2, 2), ("abxz", 2, 3)]


def test_iter_paths__last_leaf_is_current_by_default() -> None:
    assert walk({"a": None, "b": "a", "c": "a"}) == [("ac", 2, 0), ("ab", 1, 1)]
    assert walk({"a": None, "b": "a"}, "nowhere") == [("ab", 2, 0)]


def test_iter_paths__current_node_may_be_an_inner_node() -> None:
    assert walk({"a": None, "b": "a"}, "a") == [("a", 1, 0), ("ab", 1, 1)]


def test_iter_paths__several_roots_and_missing_parents() -> None:
    assert walk({"a": None, "b": "gone", "c": "b"}) == [("bc", 2, 0), ("a", 0, 0)]


def test_iter_paths__branch_point_is_stable() -> None:
    parents: Parents = {"a": None, "b": "a", "c": "b", "x": "b", "y": "x", "z": "x", "r": None}
    assert lines(parents, "c") == {"c": "", "y": "x", "z": "z", "r": "r"}
    assert lines(parents, "z") == lines(parents, "c")
    grown = lines({**parents, "c2": "c", "y2": "y", "new": "a"}, "new")
    assert grown == {"c2": "", "y2": "x", "z": "z", "r": "r", "new": "new"}


def test_iter_paths__empty_tree() -> None:
    assert walk({}) == [("", 0, 0)]


@pytest.mark.parametrize(
    "parents",
    [
        {"a": "a"},
        {"a": "b", "b": "a"},
        {"a": "b", "b": "a", "c": "a"},
        {"r": None, "a": "b", "b": "a"},
    ],
)
def test_iter_paths__cycle_is_an_error(parents: Parents) -> None:
    with pytest.raises(InvalidInput, match="cycle"):
        walk(parents)


@settings(deadline=None)
@given(choices=st.lists(st.integers(0, 30), max_size=30))
def test_iter_paths__every_node_is_new_on_exactly_one_path(choices: list[int]) -> None:
    parents: Parents = {}
    for number, choice in enumerate(choices):
        parents[str(number)] = str(choice % number) if number else None
    new = [
        node
        for path in message_tree.iter_paths(parents, None)
        for node in path.nodes[path.known_count :]
    ]
    assert sorted(new) == sorted(parents)
