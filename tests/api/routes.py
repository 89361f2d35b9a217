"""Every route of the API, with a request for the data of one resource."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import URLResolver

from mastra_memory.api import errors
from mastra_memory.api.urls import urlpatterns
from tests.support.api_client import Answer, Api, dumped
from tests.support.factories import Json, text_content

OWN = frozenset({200})
"""The caller's own resource is used instead of the named one."""
REFUSED = frozenset({403})


@dataclass(frozen=True)
class Named:
    """The data that a request is for."""

    resource_id: str
    thread_id: str
    message_id: str


@dataclass(frozen=True)
class Route:
    """A request; `<resource>`, `<thread>` and `<message>` stand for the names."""

    query: Json | None = None
    body: Any = None
    foreign: frozenset[int] = REFUSED
    """The statuses of a request for the data of another resource."""
    unscoped_only: bool = False
    has_no_owner: bool = False

    def send(self, api: Api, key: str, named: Named, accept: str = "application/json") -> Answer:
        """Send the request as this user."""
        method, path = key.split(" ", 1)
        return api.send(
            method,
            filled(path, named),
            dumped(filled(self.body, named)),
            query=filled(self.query, named),
            headers={"accept": accept},
        )


def filled(value: Any, named: Named) -> Any:
    if isinstance(value, dict):
        return {key: filled(part, named) for key, part in value.items()}
    if isinstance(value, list):
        return [filled(part, named) for part in value]
    if isinstance(value, str):
        value = value.replace("<resource>", named.resource_id).replace("<thread>", named.thread_id)
        return value.replace("<message>", named.message_id)
    return value


OWNER: Json = {"resourceId": "<resource>"}
ABOUT: Json = OWNER | {"threadId": "<thread>"}
MESSAGE: Json = ABOUT | {"id": "<message>", "role": "user", "content": text_content("changed")}

THREADS = {
    "GET threads": Route(OWNER, foreign=OWN),
    "POST threads": Route(body=OWNER | {"title": "made"}, foreign=OWN),
    "GET threads/<thread>": Route(OWNER),
    "PATCH threads/<thread>": Route(body=OWNER | {"title": "changed", "metadata": {}}),
    "GET threads/<thread>/messages": Route(OWNER),
    "POST save-messages": Route(body={"messages": [MESSAGE]}),
    "POST messages/delete": Route(OWNER, body={"messageIds": ["<message>"]}),
    "DELETE threads/<thread>": Route(OWNER),
}
ROUTES = {
    "GET status": Route(ABOUT),
    "GET config": Route(foreign=OWN, has_no_owner=True),
    "GET search": Route(ABOUT | {"searchQuery": "lighthouse"}),
    "POST threads/<thread>/clone": Route(body=OWNER),
    "POST threads/<thread>/transfer": Route(body=OWNER, unscoped_only=True),
    "GET threads/<thread>/working-memory": Route(OWNER),
    "POST threads/<thread>/working-memory": Route(body=OWNER | {"workingMemory": "changed"}),
    "GET threads/<thread>/working-memory/revisions": Route(OWNER),
    "POST threads/<thread>/working-memory/restore": Route(body=OWNER | {"version": 1}),
    "GET threads/<thread>/context": Route(OWNER | {"query": "what is it"}),
    "POST threads/<thread>/context": Route(body=OWNER | {"newMessages": ["what is it"]}),
    "GET observational-memory": Route(ABOUT),
    "POST observational-memory/buffer-status": Route(body=ABOUT | {"agentId": "test-agent"}),
    "GET observational-memory/history": Route(ABOUT),
    "GET observational-memory/status": Route(ABOUT),
    "GET observational-memory/observations": Route(ABOUT),
    "POST observational-memory/observe": Route(body=ABOUT),
    "POST observational-memory/reflect": Route(body=ABOUT),
    "POST observational-memory/corrections": Route(
        body=ABOUT | {"action": "edit", "observation": "0.0", "text": "changed"}
    ),
    **THREADS,
    "GET network/status": Route(ABOUT),
    **{key.replace(" ", " network/"): route for key, route in THREADS.items()},
}


def list_patterns(patterns: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All patterns with their whole paths, those of included lists too."""
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from list_patterns(pattern.url_patterns, path)
        else:
            yield path, pattern


def served() -> set[str]:
    """The routes that the API has, as keys of `ROUTES`."""
    found = set()
    for whole_path, pattern in list_patterns(urlpatterns):
        if pattern.callback is errors.not_found:
            continue
        path = re.sub(r"<mastra_thread_id:thread_id>", "<thread>", whole_path)
        actions: dict[str, str] = vars(pattern.callback)["actions"]
        for method in actions.keys() - {"head"}:
            found.add(f"{method.upper()} {path.removeprefix('memory/')}")
    return found
