"""Pages of messages end early at `MAX_PAGE_BYTES`, and the next page continues where they end."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from mastra_memory.db import sql
from mastra_memory.db.statement_timeout import limit_statements
from mastra_memory.memory import Memory
from mastra_memory.models import Message
from mastra_memory.recall import recent, window
from mastra_memory.types import Include, MessagePage
from tests.support.api_client import Api
from tests.support.factories import a_message, make_thread

COUNT = 17
LARGE = {3, 4, 5, 11}
IDS = [f"m{n}" for n in range(COUNT)]
MB = 1024 * 1024
HUGE_COUNT = 30
HUGE_TIMEOUT_SECONDS = 2.0
"""Formatting all huge messages takes longer than this, and those of one page a tenth of it."""


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


def fill_with_huge_messages() -> None:
    """Store 30 messages of 19 MB in a thread, without sending each of them."""
    message = a_message(make_thread("r", "huge"), "huge:0", text="x" * 19 * MB)
    Memory().save_messages([message])
    sql.execute(
        """INSERT INTO mastra_memory_message
            (id, thread_id, resource_id, role, type, signal, content, text, created_at)
        SELECT 'huge:' || n, thread_id, resource_id, role, type, signal, content, text,
            created_at + n * interval '1 second'
        FROM mastra_memory_message, generate_series(1, %s) AS n WHERE id = 'huge:0'""",
        [HUGE_COUNT - 1],
    )


def test_pages__do_not_read_the_content_of_messages_behind_their_end(
    memory_settings: Callable[..., None], api: Api
) -> None:
    memory_settings(STATEMENT_TIMEOUT_API=HUGE_TIMEOUT_SECONDS)
    fill_with_huge_messages()
    includes = [Include(id="huge:15", before=14, after=14)]
    with limit_statements(HUGE_TIMEOUT_SECONDS):
        page = Memory().list_messages("huge", per_page=HUGE_COUNT)
        of_threads = Memory().list_messages(thread_ids=["huge"], per_page=HUGE_COUNT)
        newest = recent.list_newest("huge", HUGE_COUNT)
        around = window.read_windows(includes, resource_id="r")
    assert (len(page.messages), page.total, page.has_more) == (2, HUGE_COUNT, True)
    assert (len(of_threads.messages), of_threads.has_more) == (2, True)
    assert [message.id for message in newest] == ["huge:29", "huge:28"]
    assert [message.id for message in around] == ["huge:1", "huge:2"]
    body: Any = api.get("threads/huge/messages", {"perPage": HUGE_COUNT}).body
    assert body["hasMore"] and len(body["messages"]) == 2


def test_content_bytes__follow_every_change_of_the_content() -> None:
    def size(message_id: str) -> int:
        message = Message.objects.get(pk=message_id)
        (stored,) = Memory().get_messages([message_id])
        assert message.content_bytes == len(stored.content_json.encode())
        return int(message.content_bytes)

    small = size("m0")
    Memory().update_messages([{"id": "m0", "content": "é" * 1000}])
    assert size("m0") >= small + 1900
