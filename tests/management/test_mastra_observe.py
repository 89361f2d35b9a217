"""Working off a backlog: estimates, limits, interruptions, failures."""

from collections.abc import Callable
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mastra_memory import llm
from mastra_memory.exceptions import ProviderUnavailable
from mastra_memory.models import ObservationalRecord, ObservationEvent
from tests.observational.engine import FakeObserver, observer, states, words
from tests.support.factories import a_message, held_lease, make_record, make_thread, save

pytestmark = pytest.mark.django_db
OPTIONS = {
    "observation": {"messageTokens": 1_000, "bufferTokens": False, "maxTokensPerBatch": 1_000}
}


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    prices = {"some/model": {"input": 10, "output": 10}}
    memory_settings(OPTIONS={"observationalMemory": OPTIONS}, MODEL="some/model", PRICES=prices)


def fill_thread(count: int, *, resource_id: str = "alice") -> Any:
    """A thread with this many messages of about 500 tokens that were imported."""
    thread = make_thread(resource_id)
    save([a_message(thread, text=words(500), at=n) for n in range(count)])
    return thread


def run(*arguments: str, **options: Any) -> str:
    out, err = StringIO(), StringIO()
    call_command("mastra_observe", *arguments, stdout=out, stderr=err, **options)
    return out.getvalue() + err.getvalue()


def test_dry_run__tells_what_it_would_take_and_changes_nothing() -> None:
    fill_thread(4), fill_thread(1)
    with observer() as model:
        output = run("--dry-run")
        everything = run("--dry-run", "--all")
    assert not model.requests and not ObservationalRecord.objects.exists()
    assert output.startswith("4 messages with about ")
    assert "1 conversations or resources" in output
    assert "calls of some/model" in output and "US dollars" in output
    assert everything.startswith("5 messages")


def test_run__observes_what_is_above_the_threshold() -> None:
    large, small = fill_thread(4), fill_thread(1)
    with observer() as model:
        output = run()
    assert set(states(large).values()) == {"observed"}
    assert set(states(small).values()) == {"pending"}
    assert (
        f"Observed 4 messages of 1 conversations or resources with {len(model.requests)}" in output
    )
    with observer() as model:
        assert "Observed 0 messages" in run() and not model.requests
        assert "Observed 1 messages" in run("--all")
    assert set(states(small).values()) == {"observed"}


def test_selection__by_thread_and_by_resource() -> None:
    first, second = fill_thread(4), fill_thread(4, resource_id="bob")
    with observer():
        run("--thread", first.id)
        assert set(states(second).values()) == {"pending"}
        run("--resource", "bob")
    assert set(states(second).values()) == {"observed"}


def test_max_calls__stops_and_goes_on_with_the_next_run() -> None:
    thread = fill_thread(8)
    with observer() as model:
        output = run("--max-calls", "1")
        assert len(model.requests) == 1 and "The limit of 1 calls is reached" in output
        found = list(states(thread).values())
        observed = found.count("observed")
        assert 0 < observed < 8 and f"Observed {observed} messages" in output
        run("--max-calls", "100")
    assert set(states(thread).values()) == {"observed"}


class PricedObserver(FakeObserver):
    def __call__(self, request: Any) -> Any:
        reply = super().__call__(request)
        return llm.TextReply(text=reply.text, cost=Decimal("0.6"))


def test_max_cost__stops_when_it_is_spent() -> None:
    fill_thread(8)
    model = PricedObserver()
    with llm.override_model(model):
        output = run("--max-cost", "1")
    assert len(model.requests) == 2
    assert "The limit of 1 US dollars is reached" in output and "1.2000 US dollars" in output


def test_failures__do_not_stop_the_others() -> None:
    first, second = fill_thread(4), fill_thread(4)
    with observer(ProviderUnavailable("away")):
        output = run()
    assert "away" in output and "1 failed; run the command again" in output
    assert sorted({*states(first).values(), *states(second).values()}) == ["observed", "pending"]
    with observer():
        run()
    assert {*states(first).values(), *states(second).values()} == {"observed"}


def test_busy_records__are_left_to_their_workers() -> None:
    thread = fill_thread(4)
    make_record(thread, **held_lease("observing"))
    with observer() as model:
        assert "1 were left to workers" in run()
    assert not model.requests


def test_interruption__loses_only_the_call_that_was_running() -> None:
    thread = fill_thread(8)
    with observer() as model:
        answer = model._answer
        model.answers = []

        def interrupt(request: Any) -> str:
            if len(model.requests) == 2:
                raise KeyboardInterrupt
            return answer(request)

        model._answer = interrupt  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            run()
    assert "observed" in states(thread).values() and "pending" in states(thread).values()
    assert ObservationEvent.objects.filter(state="failed").count() == 1
    with observer():
        run()
    assert set(states(thread).values()) == {"observed"}


@pytest.mark.parametrize(
    "arguments", [("--max-calls", "0"), ("--max-cost", "free"), ("--max-cost", "-1"),
                  ("--agent", "unknown")],
)  # fmt: skip
def test_arguments__wrong_ones_are_refused(
    memory_settings: Callable[..., None], arguments: tuple[str, ...]
) -> None:
    memory_settings(AGENTS={"off": {}})
    with pytest.raises(CommandError):
        run(*arguments)
    with pytest.raises(CommandError, match="not enabled"):
        run("--agent", "off")
