"""What is measured: one line of the table each, the same request for both servers."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks import data
from benchmarks.load import LANE, NUMBER

AGENT = "agentId=test-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One kind of request."""

    name: str
    title: str
    method: str = "GET"
    path: str
    body: str = ""
    holds: tuple[str, int] | None = None
    """A list in the answer and how long it must be, so that both servers do the same work."""
    consumes: bool = False
    """Each request uses up a thread that was made for it."""


def _save(count: int, kind: str) -> str:
    messages = [
        {
            "id": f"{kind}-{NUMBER}-{index}",
            "threadId": data.lane_thread(LANE),
            "resourceId": data.RESOURCE,
            "role": "assistant" if index % 2 else "user",
            "content": data.content(index),
        }
        for index in range(count)
    ]
    return json.dumps({"messages": messages}, ensure_ascii=False)


def _clone(size: int) -> Line:
    return Line(
        name=f"clone{size}",
        title=f"clone of {size:,} messages, answer included",
        method="POST",
        path=f"/api/memory/threads/{data.source_thread(size)}/clone?{AGENT}",
        body="{}",
        holds=("clonedMessages", size),
    )


def _page(name: str, title: str, thread: str, page: int) -> Line:
    path = f"/api/memory/threads/{thread}/messages?{AGENT}&perPage=40&page={page}"
    return Line(name=name, title=title, path=path, holds=("messages", 40))


def _saving(name: str, title: str, count: int) -> Line:
    return Line(
        name=name,
        title=title,
        method="POST",
        path=f"/api/memory/save-messages?{AGENT}",
        body=_save(count, name),
        holds=("messages", count),
    )


DEEP = max(data.SOURCE_SIZES)
LINES = [
    Line(
        name="thread",
        title="one thread",
        path=f"/api/memory/threads/{data.source_thread(20)}?{AGENT}",
    ),
    _page("page40", "page of 40 messages", data.source_thread(1000), 0),
    _page("deep_page", f"page 50 of {DEEP:,} messages", data.source_thread(DEEP), 50),
    Line(
        name="list100",
        title="list of 100 threads",
        path=f"/api/memory/threads?resourceId={data.LISTED_RESOURCE}&perPage=100&{AGENT}",
        holds=("threads", 100),
    ),
    _saving("save1", "save 1 message", 1),
    _saving("save100", "save 100 messages", 100),
    *(_clone(size) for size in data.SOURCE_SIZES),
    Line(
        name="delete5000",
        title=f"delete of a thread of {DEEP:,} messages",
        method="DELETE",
        path=f"/api/memory/threads/{data.doomed_thread(NUMBER)}?{AGENT}",
        consumes=True,
    ),
]
READS_AND_SAVES = ("thread", "page40", "deep_page", "list100", "save1", "save100")
TOKEN_LINES = ("thread", "page40")


def chosen_lines() -> list[Line]:
    """Give the lines that BENCH_ONLY names; all when it names none."""
    words = re.split(r"[\s,:]+", os.environ.get("BENCH_ONLY", "").strip())
    names = [word for word in words if word]
    if unknown := set(names) - {line.name for line in LINES}:
        known = ", ".join(line.name for line in LINES)
        raise SystemExit(f"BENCH_ONLY: no line is called {sorted(unknown)}; there are {known}.")
    return only(names) if names else LINES


def only(names: Iterable[str]) -> list[Line]:
    """Give the lines with these names, in the table's order."""
    wanted = set(names)
    return [line for line in LINES if line.name in wanted]
