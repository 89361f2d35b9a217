"""Which path leads where."""

from urllib.parse import quote

import pytest
from django.urls import resolve, reverse

from mastra_memory.api.urls import ENDINGS
from tests.calling import Api

NAMES = {
    "messages": "messages",
    "clone": "clone",
    "transfer": "transfer",
    "context": "context",
    "working-memory": "working-memory",
    "working-memory/revisions": "working-memory-revisions",
    "working-memory/restore": "restore-working-memory",
}
THREADS = "/api/memory/threads/"


@pytest.mark.parametrize("ending", ENDINGS)
def test_thread__may_be_called_like_an_ending(api: Api, ending: str) -> None:
    for thread_id in (ending, f"/{ending}", f"a{ending}", f"{ending}/", f"{ending}\n"):
        found = resolve(f"{THREADS}{thread_id}")
        assert (found.url_name, found.kwargs) == ("thread", {"thread_id": thread_id})
        assert reverse("mastra_memory:thread", kwargs={"thread_id": thread_id})
    assert api.post("threads", {"resourceId": "r", "threadId": ending}).status == 200
    path = f"threads/{quote(ending, safe='')}"
    assert api.get(path).body["id"] == ending
    assert api.patch(path, {"title": "New"}).body["title"] == "New"
    assert api.delete(path).status == 200


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("thread_id", ["a", "a/b", "/", "a\nb", *ENDINGS])
def test_ending__belongs_to_the_thread_before_it(thread_id: str, ending: str) -> None:
    found = resolve(f"{THREADS}{thread_id}/{ending}")
    assert (found.url_name, found.kwargs) == (NAMES[ending], {"thread_id": thread_id})
