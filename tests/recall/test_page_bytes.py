"""Pages of messages end early at `MAX_PAGE_BYTES`, and the next page continues where they end."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from mastra_memory.memory import Memory
from mastra_memory.recall import recent
from mastra_memory.types import MessagePage
from tests.support.api_client import Api
from tests.support.factories import a_message, make_thread

COUNT = 17
LARGE = {3, 4, 5, 11}
IDS = [f"m{n}" for n in range(COUNT)]


@pytest.fixture(autouse=True)
def thread(db: None, memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS={"lastMessages": 10}, MAX_PAGE_BYTES=4000)
    thread = make_thread("r", "t")
    sizes = {n: 3000 if n in LARGE else 20 for n in range(COUNT)}
    batch = [a_message(thread, f"m{n}", text="x" * sizes[n], at=n) for n in range(COUNT)]
    Memory().save_messages(batch)


def walk(read: Callable[[int, int], MessagePage], per_page: int) -> list[list[str]]:
    """Read all pages as a client does that follows the numbers of each answer."""
    pages: list[list[str]] = []
    page = 0
    while True:
        answer = read(page, per_page)
        pages.append([message.id for message in answer.messages])
        if not answer.has_more:
            return pages
        page, per_page = answer.page + 1, int(answer.per_page)


@pytest.mark.parametrize("per_page", [1, 3, 6, 10, 40])
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("include_total", [True, False])
def test_list_messages__following_pages_loses_nothing(
    per_page: int, direction: Literal["ASC", "DESC"], include_total: bool
) -> None:
    def read(page: int, size: int) -> MessagePage:
        return Memory().list_messages(
            "t", page=page, per_page=size, direction=direction, include_total=include_total
        )

    pages = walk(read, per_page)
    expected = IDS if direction == "ASC" else IDS[::-1]
    assert [one for page in pages for one in page] == expected
    assert all(len(LARGE & {int(one[1:]) for one in page}) <= 2 for page in pages)


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_list_messages__of_several_threads_loses_nothing(
    direction: Literal["ASC", "DESC"],
) -> None:
    def read(page: int, size: int) -> MessagePage:
        return Memory().list_messages(
            thread_ids=["t"], page=page, per_page=size, direction=direction
        )

    expected = IDS if direction == "ASC" else IDS[::-1]
    assert [one for page in walk(read, 6) for one in page] == expected


def test_list_messages__everything_is_not_cut() -> None:
    answer = Memory().list_messages("t", per_page=False)
    assert (len(answer.messages), answer.has_more) == (COUNT, False)


def test_list__over_http_says_where_it_ended(api: Api) -> None:
    body: Any = api.get("threads/t/messages", {"page": 0, "perPage": 15}).body
    assert body["hasMore"] and body["perPage"] == len(body["messages"]) < 15


def test_list_last_messages__are_cut_to_the_newest_that_fit() -> None:
    messages = recent.list_last_messages("t", 15)
    assert [message.id for message in messages] == IDS[5:]


def test_iterate_newest__goes_on_behind_large_messages() -> None:
    assert [message.id for message in recent.iterate_newest("t")] == IDS[::-1]
