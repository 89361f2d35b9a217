"""Windows around messages."""

import pytest

from mastra_memory.recall.window import read_windows
from mastra_memory.types import Include
from tests.conftest import Statements
from tests.support.factories import a_message, fill, make_thread, save, some_messages

pytestmark = pytest.mark.django_db


def found(*includes: Include, resource_id: str = "r") -> list[str]:
    """The ids that these windows bring."""
    return [message.id for message in read_windows(includes, resource_id=resource_id)]


def test_read_windows__each_message_once_in_the_order_of_time() -> None:
    save(some_messages(make_thread("r"), 6))
    windows = Include(id="m1", before=9, after=1), Include(id="m2", before=1, after=1)
    assert found(*windows) == ["m0", "m1", "m2", "m3"]


def test_read_windows__ties_of_time_are_neighbours_by_sequence() -> None:
    thread = make_thread("r")
    save([a_message(thread, f"m{n}", at=0) for n in range(5)])
    assert found(Include(id="m2", before=1, after=1)) == ["m1", "m2", "m3"]
    assert found(Include(id="m0", after=2)) == ["m0", "m1", "m2"]


def test_read_windows__never_cross_threads_or_resources() -> None:
    first, second, foreign = make_thread("r"), make_thread("r"), make_thread("s")
    for at, thread in enumerate((first, second, foreign, first, second)):
        save([a_message(thread, f"{at}", at=at)])
    assert found(Include(id="0", before=9, after=9)) == ["0", "3"]
    assert found(Include(id="2", before=9, after=9), Include(id="nobody")) == []
    assert found(Include(id="0", before=9, after=9), resource_id="s") == []


def test_read_windows__one_statement_for_any_number(statements: Statements) -> None:
    thread = make_thread("r")
    fill(thread, 50)
    with statements() as sent:
        windows = [Include(id=f"{thread.id}:{n}", before=60, after=60) for n in range(50)]
        assert len(read_windows(windows, resource_id="r")) == 50
    assert len(sent) == 1
    assert read_windows([], resource_id="r") == []


def test_read_windows__negative_sizes_are_none() -> None:
    save(some_messages(make_thread("r"), 3))
    assert found(Include(id="m1", before=-5, after=-5)) == ["m1"]
    assert found(Include(id="m\x00")) == []
