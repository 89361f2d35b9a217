"""A small HTTP server for tests of code that calls models.

It implements the API of OpenAI, and the Messages API of Anthropic.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ScriptEntry = str | int | float | dict[str, Any] | Callable[[dict[str, Any]], Any]
"""The response to one request: a text, an error status (int), a delay in seconds (float) and then
the text "late", the arguments of a tool call, or a function that takes the request and returns one
of these."""


@dataclass
class OpenAIServer:
    """Send the responses of `script` in order; the last one is repeated."""

    base_url: str
    script: list[ScriptEntry] = field(default_factory=lambda: ["Hello"])
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def next(self, request: dict[str, Any]) -> Any:
        index = min(len(self.requests), len(self.script) - 1)
        self.requests.append(request)
        entry = self.script[index]
        return entry(request) if callable(entry) else entry

    @property
    def prompts(self) -> list[str]:
        """The user's text of every request."""
        return [_text_of(request["messages"][-1]["content"]) for request in self.requests]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


@contextmanager
def openai_server(*script: ScriptEntry) -> Iterator[OpenAIServer]:
    """A server on a free port of this machine while the block runs."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    state = OpenAIServer(f"http://127.0.0.1:{http.server_address[1]}/v1", list(script) or ["Hello"])
    http.state = state  # type: ignore[attr-defined]
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        state: OpenAIServer = self.server.state  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Authorization") or self.headers.get("X-Api-Key") or ""
        state.keys.append(key)
        if self.path.partition("?")[0] not in _ROUTES:
            return self.send(404, {"error": {"message": f"no route {self.path}"}})
        entry = state.next(body)
        if isinstance(entry, int) and not isinstance(entry, bool):
            return self.send(entry, {"error": {"message": f"status {entry}", "type": "test"}})
        if isinstance(entry, float):
            time.sleep(entry)
            entry = "late"
        answer = _ROUTES[self.path.partition("?")[0]](body, entry)
        if answer.get("type") == "message" and body.get("stream"):
            return self.write(200, "text/event-stream", _events(answer))
        return self.send(200, answer)

    def send(self, status: int, body: dict[str, Any]) -> None:
        self.write(status, "application/json", json.dumps(body).encode())

    def write(self, status: int, kind: str, data: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client had enough

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: tests look at `requests`."""


def _embeddings(request: dict[str, Any], entry: Any) -> dict[str, Any]:
    """Return the vectors of the script, or `[length of the text, 1]` for each text."""
    texts = request["input"]
    vectors = entry if isinstance(entry, list) else [[float(len(text)), 1.0] for text in texts]
    data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
    usage = {"prompt_tokens": 7 * len(texts), "total_tokens": 7 * len(texts)}
    return {"object": "list", "data": data, "model": request["model"], "usage": usage}


def _completion(request: dict[str, Any], entry: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": entry}
    reason = "stop"
    if isinstance(entry, dict):
        name = entry.get("tool") or request["tools"][0]["function"]["name"]
        arguments = json.dumps(entry.get("args", entry))
        function = {"name": name, "arguments": arguments}
        call: Any = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "tool_calls"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 8, "total_tokens": 128},
    }


def _message(request: dict[str, Any], entry: Any) -> dict[str, Any]:
    """Anthropic's form of an answer."""
    content, reason = {"type": "text", "text": entry}, "end_turn"
    if isinstance(entry, dict):
        name = entry.get("tool") or request["tools"][0]["name"]
        content = {"type": "tool_use", "id": "toolu_1", "name": name}
        content["input"] = entry.get("args", entry)
        reason = "tool_use"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [content],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 120, "output_tokens": 8},
    }


def _events(message: dict[str, Any]) -> bytes:
    """The same as a stream, which Anthropic's client asks for where an answer may be long."""
    (content,) = message["content"]
    begun = {**content, "text": ""} if content["type"] == "text" else {**content, "input": {}}
    delta = {"type": "text_delta", "text": content.get("text")}
    if content["type"] == "tool_use":
        delta = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
            "usage": message["usage"],
        },
        {"type": "message_stop"},
    ]
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()


_ROUTES: dict[str, Callable[[dict[str, Any], Any], dict[str, Any]]] = {
    "/v1/chat/completions": _completion,
    "/v1/embeddings": _embeddings,
    "/v1/messages": _message,
}
