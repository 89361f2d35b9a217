"""The parts of the comparison and of the plot of observational memory."""

import json
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

from benchmarks import observation_plot
from benchmarks.observation_plot import Budget, Point
from benchmarks.observational_peer import fake_model, report
from benchmarks.observational_peer.fake_model import FakeModel
from benchmarks.observational_peer.scenarios import SCENARIOS
from benchmarks.observational_peer.steps import FIELDS, Step, build_step

TRANSCRIPT = "Mar 3 2025:\nUser (9:00 AM): We move to Lyon\nAssistant: Noted\nand done"
OBSERVED = """<observations>
Date: Mar 3, 2025
* 🟢 (09:00) User stated: We move to Lyon
* 🟢 (09:00) Assistant answered: Noted
</observations>"""
LOG = "Date: Mar 3, 2025\n* 🔴 (09:00) A\n* 🟡 (09:01) B"


def test_answer__observes_each_message_under_its_day() -> None:
    assert fake_model.answer("", f"* 🔴 (08:00) known\n{TRANSCRIPT}") == ("observation", OBSERVED)


def test_answer__hints_only_if_the_request_asks_for_them() -> None:
    _, text = fake_model.answer("<current-task>", TRANSCRIPT)
    assert text == f"{OBSERVED}\n<current-task>\nTalk about Noted\n</current-task>"


def test_answer__threads_get_sections() -> None:
    prompt = f'<thread id="a">\n{TRANSCRIPT}\n</thread>\n<thread id="b">\n{TRANSCRIPT}\n</thread>'
    _, text = fake_model.answer("", prompt)
    assert text.count("Date: Mar 3, 2025") == 2
    assert '<thread id="a">\n' in text and '<thread id="b">\n' in text


def test_answer__reflects_shorter_at_the_second_attempt() -> None:
    assert fake_model.answer("", LOG)[1] == f"<observations>\n{LOG}\n</observations>"
    assert "B" not in fake_model.answer("", LOG, attempt=1)[1]


@pytest.mark.parametrize("streams", [False, True])
def test_fake_model__speaks_the_protocol_of_openai(streams: bool) -> None:
    server = FakeModel.start()
    body = {
        "model": "fake",
        "stream": streams,
        "messages": [
            {"role": "system", "content": "Observe."},
            {"role": "user", "content": [{"type": "text", "text": TRANSCRIPT}]},
        ],
    }
    try:
        url = f"{server.get_url('test')}/chat/completions"
        with urlopen(Request(url, json.dumps(body).encode()), timeout=10) as response:
            text = response.read().decode()
    finally:
        server.stop()
    assert "User stated: We move to Lyon" in text
    (call,) = server.take_calls("test")
    assert call.transcript == ["User: We move to Lyon", "Assistant: Noted"]
    assert server.take_calls("test") == []


def test_scenarios__each_has_explanations_of_compared_values() -> None:
    assert set(report.EXPLANATIONS) == {scenario.name for scenario in SCENARIOS}
    for explanations in report.EXPLANATIONS.values():
        assert set(explanations) <= set(FIELDS)


def test_scenarios__turns_have_unique_ids_and_rising_times() -> None:
    for scenario in SCENARIOS:
        turns = scenario.make_turns()
        messages = [message for turn in turns for message in (turn.user, turn.answer)]
        times = [message["createdAt"] for message in messages]
        assert len({message["id"] for message in messages}) == len(messages) > 40
        assert times == sorted(times)
        assert len({turn.thread_id for turn in turns}) == scenario.threads


def make_step(pending: int, log: str) -> Step:
    return build_step(
        system="",
        message_ids=[],
        has_continuation=False,
        record={"activeObservations": log},
        status={"pendingTokens": pending, "unbufferedPendingTokens": 0},
        metadata={},
        calls=[],
    )


def test_difference_table__counts_what_has_no_explanation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "EXPLANATIONS", {"name": {"pending_tokens": "A reason."}})
    pairs = [(make_step(1, "a"), make_step(1, "a")), (make_step(2, "b"), make_step(3, "c"))]
    table, unexplained = report.make_difference_table("name", pairs)
    assert "| pending_tokens | 1 of 2 | 2 | 2 | 3 | A reason. |" in table
    assert "| log | 1 of 2 | 2 | b | c | UNEXPLAINED |" in table
    assert unexplained == 1


def make_point(history: int, observations: int, *, messages: int = 1) -> Point:
    return Point(
        messages=messages,
        history=history,
        observations=observations,
        total=history + observations,
        generation=messages // 2,
        activations=messages,
        stored=history,
    )


def test_list_exceeded__each_part_has_its_own_budget() -> None:
    budget = Budget(100, 200)
    within, long_history, long_log = (
        make_point(100, 200),
        make_point(101, 0),
        make_point(0, 201),
    )
    exceeded = observation_plot.list_exceeded(budget, [within, long_history, long_log])
    assert exceeded == [long_history, long_log]


def test_draw__is_well_formed_and_has_all_lines() -> None:
    points = [make_point(number * 10, number, messages=number * 2) for number in range(1, 9)]
    root = ElementTree.fromstring(observation_plot.draw(Budget(100, 200), points))
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert names.count("polyline") == 4
    assert "budget: 300 tokens" in "".join(root.itertext())
