"""A fake model behind a small server with OpenAI's chat protocol.

Its answers depend only on the messages or the log that it is shown, not on the wording of the
prompt, so that two engines with different prompts get the same answers:

- Observer: one observation for each line of the transcript, under the date of its day.
- Reflector: the observations with the highest priority. Its first answer for a log is too long,
  so that the next level of compression is needed.

python -m benchmarks.observational_peer.fake_model 18080
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Literal

_DAY = re.compile(r"[A-Z][a-z]{2} \d{1,2},? \d{4}:")
_LINE = re.compile(r"(?P<role>User|Assistant)(?: \((?P<time>\d+:\d\d [AP]M)\))?: (?P<text>.+)")
_THREAD = re.compile(r'<thread id="(?P<id>[^"]+)">')
_ITEM = re.compile(r"[ \t]*\* ")
_PRIORITY = ("🔴", "🟡", "🟢")
CURRENT_TASK, SUGGESTED_RESPONSE = "<current-task>", "<suggested-response>"
MAX_WORDS = 12
"""Words of a message that its observation repeats."""

Purpose = Literal["observation", "reflection"]


@dataclass(frozen=True, slots=True)
class Call:
    """A request of one side, and the answer."""

    side: str
    purpose: Purpose
    instructions: str
    prompt: str
    answer: str

    @property
    def transcript(self) -> list[str]:
        """The lines of the prompt that are messages, without their times."""
        return [f"{line['role']}: {line['text']}" for line in _find_lines(self.prompt)]


def answer(instructions: str, prompt: str, *, attempt: int = 0) -> tuple[Purpose, str]:
    """Return what the request is for, and the answer.

    Args:
        instructions: The system prompt.
        prompt: The other messages, joined.
        attempt: How many times the Reflector was asked about the same log before.
    """
    if any(True for _ in _find_lines(prompt)):
        return "observation", _observe(instructions, prompt)
    return "reflection", _reflect(prompt, attempt)


def get_log_items(prompt: str) -> list[str]:
    """Return the observations in a prompt of the Reflector, with their days."""
    lines = [line.strip() for line in prompt.splitlines()]
    return [line for line in lines if _ITEM.match(line) and line.startswith("* ")]


def _find_lines(prompt: str) -> Iterator[re.Match[str]]:
    for line in prompt.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            yield match


def _observe(instructions: str, prompt: str) -> str:
    """Write an observation for each message; in sections if the transcript has threads."""
    sections: dict[str, list[str]] = {}
    thread, day, clock, last = "", "", "", ""
    for raw in prompt.splitlines():
        line = raw.strip()
        if match := _THREAD.fullmatch(line):
            thread, day, clock = match["id"], "", ""
        elif _DAY.fullmatch(line):
            day = f"Date: {_format_day(line)}"
            sections.setdefault(thread, []).append(day)
        elif match := _LINE.fullmatch(line):
            clock = match["time"] or clock
            last = match["text"]
            sections.setdefault(thread, []).append(_format_item(match, clock))
    texts = {name: "\n".join(lines) for name, lines in sections.items()}
    if set(texts) - {""}:
        body = "\n".join(
            f'<thread id="{name}">\n{text}\n</thread>' for name, text in texts.items() if name
        )
    else:
        body = texts[""]
    hints = _write_hints(instructions + prompt, last)
    return f"<observations>\n{body}\n</observations>{hints}"


def _format_day(line: str) -> str:
    month, day, year = line.rstrip(":").replace(",", "").split()
    return f"{month} {int(day)}, {year}"


def _format_item(match: re.Match[str], clock: str) -> str:
    words = match["text"].split()
    priority = _PRIORITY[sum(map(ord, words[0])) % 3]
    time = f"({datetime.strptime(clock, '%I:%M %p'):%H:%M}) " if clock else ""
    verb = "stated" if match["role"] == "User" else "answered"
    return f"* {priority} {time}{match['role']} {verb}: {' '.join(words[:MAX_WORDS])}"


def _write_hints(request: str, text: str) -> str:
    """Write the hints that the request asks for."""
    subject = " ".join(text.split()[:6])
    hints = ""
    if CURRENT_TASK in request:
        hints += f"\n<current-task>\nTalk about {subject}\n</current-task>"
    if SUGGESTED_RESPONSE in request:
        hints += f"\n<suggested-response>\nAsk about {subject}\n</suggested-response>"
    return hints


def _reflect(prompt: str, attempt: int) -> str:
    """Keep what is important, or every second observation if all are. First, keep everything."""
    items = get_log_items(prompt)
    important = [item for item in items if _PRIORITY[0] in item]
    kept = set(items if attempt == 0 else important)
    if attempt and len(important) in (0, len(items)):
        kept = set(items[::2])
    lines: list[str] = []
    day = ""
    for raw in prompt.splitlines():
        line = raw.strip()
        if line.startswith("Date: "):
            day = line
        elif line in kept:
            if day and day not in lines:
                lines.append(day)
            lines.append(line)
    return "<observations>\n" + "\n".join(lines) + "\n</observations>"


@dataclass(slots=True)
class FakeModel:
    """A running server, and the requests that it got. Each side has its own URL."""

    server: ThreadingHTTPServer
    calls: list[Call] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    attempts: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def start(cls, port: int = 0) -> "FakeModel":
        """Serve on a loopback port until `stop`."""
        server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        model = cls(server)
        server.model = model  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        return model

    def stop(self) -> None:
        """Stop the server."""
        self.server.shutdown()
        self.server.server_close()

    def get_url(self, side: str) -> str:
        """Return the base URL for one side."""
        return f"http://127.0.0.1:{self.server.server_port}/{side}/v1"

    def take_calls(self, side: str) -> list[Call]:
        """Return the requests of a side since the last time, oldest first."""
        with self.lock:
            taken = [call for call in self.calls if call.side == side]
            self.calls = [call for call in self.calls if call.side != side]
        return taken

    def complete(self, side: str, messages: list[dict[str, Any]]) -> str:
        """Answer a request, and note it."""
        texts = [(message["role"], _read_text(message["content"])) for message in messages]
        roles = ("system", "developer")
        instructions = "\n\n".join(text for role, text in texts if role in roles)
        prompt = "\n\n".join(text for role, text in texts if role not in roles)
        with self.lock:
            key = (side, "\n".join(get_log_items(prompt)))
            attempt = self.attempts.get(key, 0)
            purpose, text = answer(instructions, prompt, attempt=attempt)
            if purpose == "reflection":
                self.attempts[key] = attempt + 1
            self.calls.append(Call(side, purpose, instructions, prompt, text))
        return text


def _read_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())


class _Handler(BaseHTTPRequestHandler):
    """Answers `POST /<side>/v1/chat/completions`, as a whole or as a stream."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        side = self.path.strip("/").split("/")[0]
        model: FakeModel = self.server.model  # type: ignore[attr-defined]
        try:
            text = model.complete(side, body["messages"])
        except (LookupError, ValueError) as error:
            # A client would repeat its request for minutes after a broken connection.
            self._send("application/json", json.dumps({"error": repr(error)}).encode(), 400)
            raise
        usage = {"prompt_tokens": len(str(body["messages"])) // 4, "completion_tokens": 1}
        usage["completion_tokens"] = max(1, len(text) // 4)
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        if body.get("stream"):
            self._send_stream(body["model"], text, usage)
        else:
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
            reply = _envelope(body["model"], "chat.completion", [choice], usage)
            self._send("application/json", json.dumps(reply).encode())

    def _send_stream(self, name: str, text: str, usage: dict[str, int]) -> None:
        kind = "chat.completion.chunk"
        delta = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        events = [
            _envelope(name, kind, [delta], None),
            _envelope(name, kind, [end], None),
            _envelope(name, kind, [], usage),
        ]
        lines = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
        self._send("text/event-stream", "".join(lines).encode())

    def _send(self, content_type: str, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Write no log."""


def _envelope(
    name: str, kind: str, choices: list[dict[str, Any]], usage: dict[str, int] | None
) -> dict[str, Any]:
    reply = {"id": "fake", "object": kind, "created": 0, "model": name, "choices": choices}
    return reply | {"usage": usage} if usage is not None else reply


if __name__ == "__main__":
    fake = FakeModel.start(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    sys.stdout.write(f"{fake.get_url('any')}\n")
    try:
        Event().wait()
    except KeyboardInterrupt:
        fake.stop()
