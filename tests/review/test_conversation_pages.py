"""Pages of a conversation in the admin."""

from collections.abc import Iterator

import pytest

from mastra_memory.memory import Memory
from mastra_memory.review import conversation_pages
from tests.support.factories import a_message, make_thread

COUNT = 12
LARGE = {2, 3, 7}
IDS = [f"m{n}" for n in range(COUNT)]


@pytest.fixture(autouse=True)
def thread(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_pages, "MAX_PAGE_BYTES", 4000)
    thread = make_thread("r", "t")
    texts = ["x" * (3000 if n in LARGE else 10) for n in range(COUNT)]
    Memory().save_messages([a_message(thread, f"m{n}", text=texts[n], at=n) for n in range(COUNT)])


def _walk_later() -> Iterator[list[str]]:
    page = conversation_pages.get_oldest_page("t", size=5)
    yield [message.pk for message in page.messages]
    while page.has_later:
        page = conversation_pages.get_page_after(page.messages[-1], size=5)
        yield [message.pk for message in page.messages]


def _walk_earlier() -> Iterator[list[str]]:
    page = conversation_pages.get_newest_page("t", size=5)
    yield [message.pk for message in page.messages]
    while page.has_earlier:
        page = conversation_pages.get_page_before(page.messages[0], size=5)
        yield [message.pk for message in page.messages]


def test_get_page_after__reaches_every_message_once() -> None:
    pages = list(_walk_later())
    assert [one for page in pages for one in page] == IDS
    assert all(len(page) <= 5 for page in pages)


def test_get_page_before__reaches_every_message_once() -> None:
    pages = list(_walk_earlier())
    assert [one for page in reversed(pages) for one in page] == IDS


def test_get_oldest_page__ends_at_max_page_bytes() -> None:
    page = conversation_pages.get_oldest_page("t", size=10)
    assert ([message.pk for message in page.messages], page.has_later) == (IDS[:4], True)


def test_get_oldest_page__holds_one_message_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_pages, "MAX_PAGE_BYTES", 1)
    page = conversation_pages.get_oldest_page("t", size=10)
    assert ([message.pk for message in page.messages], page.has_later) == (IDS[:1], True)


def test_get_newest_page__of_an_empty_thread() -> None:
    make_thread("r", "empty")
    page = conversation_pages.get_newest_page("empty")
    assert (list(page.messages), page.has_earlier, page.has_later) == ([], False, False)
