"""The measured scenarios: each is one line of the tables and one key of the JSON output."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from benchmarks import dataset
from benchmarks.load_generator import NUMBER, SLOT, Request
from benchmarks.targets import Product

AGENT = "agentId=test-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Request):
    """One request of a scenario, and what its response must contain."""

    list_name: str = ""
    """A list in the response whose length is checked, so that both servers do the same work."""
    list_length: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Requests that are sent one after the other on one connection and counted as one run."""

    name: str
    title: str
    steps: tuple[Step, ...]
    mastra_steps: tuple[Step, ...] = ()
    """The requests to send to Mastra instead, if it lacks a route of `steps`."""
    deletes_a_thread: bool = False
    """Each run deletes a thread that was created for it."""

    def steps_for(self, product: Product) -> tuple[Step, ...]:
        """Return the requests that this product is measured with."""
        return self.mastra_steps if product == "mastra" and self.mastra_steps else self.steps


def _save(count: int, id_prefix: str, thread_id: str) -> Step:
    messages = [
        {
            "id": f"{id_prefix}-{NUMBER}-{index}",
            "threadId": thread_id,
            "resourceId": dataset.RESOURCE,
            "role": "assistant" if index % 2 else "user",
            "content": dataset.message_content(index),
        }
        for index in range(count)
    ]
    return Step(
        method="POST",
        path=f"/api/memory/save-messages?{AGENT}",
        body=json.dumps({"messages": messages}, ensure_ascii=False),
        list_name="messages",
        list_length=count,
    )


def _save_scenario(name: str, title: str, count: int) -> Scenario:
    return Scenario(name=name, title=title, steps=(_save(count, name, dataset.slot_thread(SLOT)),))


def _page_scenario(name: str, title: str, thread: str, page: int) -> Scenario:
    path = f"/api/memory/threads/{thread}/messages?{AGENT}&perPage=40&page={page}"
    return Scenario(
        name=name, title=title, steps=(Step(path=path, list_name="messages", list_length=40),)
    )


def _clone_scenario(size: int) -> Scenario:
    step = Step(
        method="POST",
        path=f"/api/memory/threads/{dataset.source_thread(size)}/clone?{AGENT}",
        body="{}",
        list_name="clonedMessages",
        list_length=size,
    )
    title = f"clone of {size:,} messages, all of them in the response"
    return Scenario(name=f"clone{size}", title=title, steps=(step,))


def _turn_scenario() -> Scenario:
    """One turn of an agent: read the context, then save the user's message and the answer.

    Mastra's server has no route for the context. Its client reads the latest messages and the
    working memory and puts the prompt together itself, which costs the server nothing.
    """
    thread_id = dataset.turn_thread(SLOT)
    thread = f"/api/memory/threads/{thread_id}"
    save = _save(2, "turn", thread_id)
    query = urlencode({"query": dataset.sentences(1)})
    context = Step(
        path=f"{thread}/context?{AGENT}&{query}",
        list_name="messages",
        list_length=dataset.HISTORY_LENGTH + 1,
    )
    newest_first = json.dumps({"field": "createdAt", "direction": "DESC"})
    page = urlencode({"perPage": dataset.HISTORY_LENGTH, "page": 0, "orderBy": newest_first})
    history = Step(
        path=f"{thread}/messages?{AGENT}&{page}",
        list_name="messages",
        list_length=dataset.HISTORY_LENGTH,
    )
    resource = urlencode({"resourceId": dataset.RESOURCE})
    working_memory = Step(path=f"{thread}/working-memory?{AGENT}&{resource}")
    return Scenario(
        name="turn",
        title="an agent's turn: context, then save 2 messages",
        steps=(context, save),
        mastra_steps=(history, working_memory, save),
    )


LONGEST = max(dataset.SOURCE_SIZES)
SCENARIOS = [
    Scenario(
        name="thread",
        title="one thread",
        steps=(Step(path=f"/api/memory/threads/{dataset.source_thread(20)}?{AGENT}"),),
    ),
    _page_scenario("page40", "page of 40 messages", dataset.source_thread(1000), 0),
    _page_scenario(
        "deep_page", f"page 50 of {LONGEST:,} messages", dataset.source_thread(LONGEST), 50
    ),
    Scenario(
        name="list100",
        title="list of 100 threads",
        steps=(
            Step(
                path="/api/memory/threads?"
                f"resourceId={dataset.LISTED_RESOURCE}&perPage=100&{AGENT}",
                list_name="threads",
                list_length=100,
            ),
        ),
    ),
    _save_scenario("save1", "save 1 message", 1),
    _save_scenario("save100", "save 100 messages", 100),
    _turn_scenario(),
    *(_clone_scenario(size) for size in dataset.SOURCE_SIZES),
    Scenario(
        name="delete5000",
        title=f"delete a thread of {LONGEST:,} messages",
        steps=(
            Step(
                method="DELETE",
                path=f"/api/memory/threads/{dataset.disposable_thread(NUMBER)}?{AGENT}",
            ),
        ),
        deletes_a_thread=True,
    ),
]
SQL_SCENARIOS = ("thread", "page40", "deep_page", "list100", "save1", "save100")
"""Measured a second time as bare SQL."""
TOKEN_SCENARIOS = ("thread", "page40")
"""Measured a second time with an access token."""

STORE_WORKING_MEMORY = Request(
    method="POST",
    path=f"/api/memory/threads/{dataset.source_thread(20)}/working-memory?{AGENT}",
    body=json.dumps(
        {"resourceId": dataset.RESOURCE, "workingMemory": f"# User\n{dataset.sentences(2)}"}
    ),
)
"""Sent once to each server before it is measured, so that turns have something to read."""


def selected_scenarios() -> list[Scenario]:
    """Return the scenarios named in BENCH_ONLY, or all of them if it is empty."""
    words = re.split(r"[\s,:]+", os.environ.get("BENCH_ONLY", "").strip())
    names = [word for word in words if word]
    if unknown := set(names) - {scenario.name for scenario in SCENARIOS}:
        known = ", ".join(scenario.name for scenario in SCENARIOS)
        raise SystemExit(f"BENCH_ONLY: unknown scenarios {sorted(unknown)}. Known are {known}.")
    return scenarios_named(names) if names else SCENARIOS


def scenarios_named(names: Iterable[str]) -> list[Scenario]:
    """Return the scenarios with these names, in the order of the table."""
    wanted = set(names)
    return [scenario for scenario in SCENARIOS if scenario.name in wanted]
