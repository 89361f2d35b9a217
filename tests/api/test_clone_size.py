"""The answer to a clone is bounded in bytes, as a page of messages is."""

from collections.abc import Callable

from mastra_memory.memory import Memory
from tests.support.api_client import Api
from tests.support.factories import a_message, make_thread


def test_clone__answer_ends_at_max_page_bytes(
    api: Api, memory_settings: Callable[..., None]
) -> None:
    memory_settings(MAX_PAGE_BYTES=5000)
    thread = make_thread("r", "t")
    batch = [a_message(thread, f"m{n}", text="x" * 2000, at=n) for n in range(6)]
    Memory().save_messages(batch)
    body = api.post("threads/t/clone", {"newThreadId": "c"}).body
    assert (len(body["clonedMessages"]), len(body["messageIdMap"]), body["hasMore"]) == (3, 6, True)
    assert Memory().list_messages("c").total == 6


def test_clone__of_ordinary_size_has_all_messages(api: Api) -> None:
    thread = make_thread("r", "t")
    Memory().save_messages([a_message(thread, f"m{n}", at=n) for n in range(6)])
    body = api.post("threads/t/clone", {}).body
    assert (len(body["clonedMessages"]), "hasMore" in body) == (6, False)
