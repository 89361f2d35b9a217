"""The view and the thread id of each path."""

from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import resolve, reverse

from tests.support.api_client import Api

NAMES = {
    "/messages": "thread-message-list",
    "/clone": "thread-clone",
    "/transfer": "thread-transfer",
    "/context": "context",
    "/working-memory": "working-memory",
    "/working-memory/revisions": "working-memory-revisions",
    "/working-memory/restore": "working-memory-restore",
}
ENDINGS = list(NAMES)
THREADS = "/api/memory/threads/"


@pytest.mark.parametrize("ending", ENDINGS)
def test_thread__may_have_an_id_like_an_ending(api: Api, ending: str) -> None:
    name = ending.removeprefix("/")
    for thread_id in (name, ending, f"a{name}", f"{ending}/", f"a{ending}\n"):
        found = resolve(f"{THREADS}{thread_id}")
        assert (found.url_name, found.kwargs) == ("thread-detail", {"thread_id": thread_id})
        assert reverse("mastra_memory:thread-detail", kwargs={"thread_id": thread_id})
    assert api.post("threads", {"resourceId": "r", "threadId": name}).status == 200
    path = f"threads/{quote(name, safe='')}"
    assert api.get(path).body["id"] == name
    assert api.patch(path, {"title": "New"}).body["title"] == "New"
    assert api.delete(path).status == 200


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("thread_id", ["a", "a/b", "/", "a\nb", "messages", *ENDINGS])
def test_ending__follows_the_thread_id(thread_id: str, ending: str) -> None:
    found = resolve(f"{THREADS}{thread_id}{ending}")
    assert (found.url_name, found.kwargs) == (NAMES[ending], {"thread_id": thread_id})


def test_schema__describes_thread_ids_alike(schema: Any) -> None:
    shapes = [
        parameter["schema"]
        for operations in schema["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", ())
        if parameter["name"] == "thread_id"
    ]
    assert len(shapes) > 10
    assert all(shape == shapes[0] for shape in shapes)


@pytest.mark.parametrize("path", ["nothing", "threads/", "nothing/at/all?x=1"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_unknown_path__is_404_in_json(client: Client, path: str, method: str) -> None:
    reply = client.generic(method, f"/api/memory/{path}")
    assert (reply.status_code, reply.headers["Content-Type"]) == (404, "application/json")
    assert reply.json() == {"error": "Not found"}
