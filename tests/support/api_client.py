"""Calling the API as a program does, through the test client."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from rest_framework.test import APIClient

Query = Mapping[str, Any]
BASE = "/api/memory/"


@dataclass(frozen=True)
class Answer:
    """A response of the API."""

    status: int
    body: Any
    """Parsed JSON; None if the answer is not JSON."""
    raw: bytes
    headers: Mapping[str, str]


class Api:
    """The API as one user sees it; `agentId` is added to every request unless it is None."""

    def __init__(self, user: User | None = None, *, agent_id: str | None = "test-agent") -> None:
        self.user = user
        self.agent_id = agent_id
        self.client = APIClient()
        if user is not None:
            self.client.force_authenticate(user)

    def through(self, agent_id: str | None) -> "Api":
        """The same user through another agent, or without one."""
        return Api(self.user, agent_id=agent_id)

    def get(self, path: str, query: Query | None = None) -> Answer:
        """Read."""
        return self.send("GET", path, query=query)

    def post(self, path: str, body: Any = None, query: Query | None = None) -> Answer:
        """Send JSON."""
        return self.send("POST", path, dumped(body), query=query)

    def patch(self, path: str, body: Any = None, query: Query | None = None) -> Answer:
        """Change something."""
        return self.send("PATCH", path, dumped(body), query=query)

    def delete(self, path: str, query: Query | None = None) -> Answer:
        """Delete something."""
        return self.send("DELETE", path, query=query)

    def send(
        self,
        method: str,
        path: str,
        raw: bytes = b"",
        *,
        query: Query | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send these bytes. The path is percent-encoded by the caller, the query here."""
        agent = {} if self.agent_id is None else {"agentId": self.agent_id}
        send: Any = self.client.generic  # the stubs do not allow bytes
        response = send(
            method,
            path if path.startswith("/") else BASE + path,
            raw,
            content_type=content_type,
            query_params=agent | {name: _text(value) for name, value in (query or {}).items()},
            headers=headers,
        )
        return answer_of(response)


def answer_of(response: Any) -> Answer:
    """Return status and content of a response of the test client."""
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    content = response.getvalue()  # of a streamed answer too
    body = json.loads(content) if is_json and content else None
    return Answer(response.status_code, body, content, response.headers)


def dumped(body: Any) -> bytes:
    """A body as bytes; nothing for None."""
    return b"" if body is None else json.dumps(body).encode()


def _text(value: Any) -> str | list[str]:
    """A query value: JSON for objects and lists, several values for a tuple."""
    if isinstance(value, tuple):
        return [str(one) for one in value]
    if isinstance(value, dict | list | bool):
        return json.dumps(value)
    return str(value)


def ids(answer: Answer) -> list[str]:
    """The ids of an answer's messages or threads, in its order."""
    assert answer.status == 200, answer.raw
    return [row["id"] for row in answer.body.get("messages", answer.body.get("threads"))]


def texts(answer: Answer) -> list[str]:
    """The texts of an answer's messages, in its order."""
    assert answer.status == 200, answer.raw
    return [row["content"]["parts"][0]["text"] for row in answer.body["messages"]]


def fields_of(answer: Answer) -> list[str]:
    """The fields that an answer of 400 complains about."""
    assert answer.status == 400, answer.raw
    return [issue["field"] for issue in answer.body["issues"]]
