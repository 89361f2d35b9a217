"""Answers of the Observer and the Reflector."""

from typing import Any

import pytest

from mastra_memory.observational import parsing
from mastra_memory.observational.parsing import ParsedAnswer
from mastra_memory.options import ContinuationHints

NO_HINTS = ContinuationHints(current_task=False, suggested_response=False)


def parse(answer: str, **options: Any) -> ParsedAnswer:
    return parsing.parse_answer(answer, **{"hints": ContinuationHints(), **options})


@pytest.mark.parametrize(
    ("answer", "observations"),
    [
        (
            "<observations>\n* a\n</observations>\nmid\n<observations>\n* b\n</observations>",
            "* a\n* b",
        ),
        ("<observations>\n* unclosed", "* unclosed"),
        ("Sure!\n- one\n  * two\n3. three\ntext", "- one\n  * two\n3. three"),
        # Mastra loses this block. We accept a closing tag anywhere.
        ("<observations>* a</observations>", "* a"),
        ("text <observations>* a</observations>", ""),
        ("", ""),
        ("   \n\n", ""),
        ("I cannot do that.", ""),
        ("<observations>\n\n</observations>", ""),
        ("<OBSERVATIONS>\r\n* a\r\n</OBSERVATIONS>", "* a"),
        ("<think>\n<observations>* no</observations>\n</think>\n* yes", "* yes"),
        ("<observations>\n* says </observations> aloud\n</observations>",
         "* says </observations> aloud"),
        ("\t<observations>\n* a\n  * -> b\n </observations>", "* a\n  * -> b"),
    ],
)  # fmt: skip
def test_parse_answer__observations(answer: str, observations: str) -> None:
    assert parse(answer).observations == observations


def test_parse_answer__removes_what_only_we_write_into_a_log() -> None:
    answer = """<observations>
<thread id="other">
<observation-group id="x" range="a:b">
* a
</observation-group>
--- message boundary (2025-01-04T10:07:00.000Z) ---
* b
</thread>
</observations>"""
    assert parse(answer).observations == "* a\n\n* b"
    kept = parse(answer, keep_thread_tags=True).observations
    assert kept == '<thread id="other">\n* a\n\n* b\n</thread>'


def test_parse_answer__cuts_overlong_lines() -> None:
    answer = parse(f"<observations>\n* {'x' * 10_001}\n* {'y' * 9_998}\n</observations>")
    first, second = answer.observations.split("\n")
    assert first == f"* {'x' * 9_998} … [truncated]" and second == f"* {'y' * 9_998}"


def test_parse_answer__reads_hints_anywhere_and_removes_them() -> None:
    answer = parse(
        "<observations>\n* a\n<current-task>old</current-task>\n</observations>\n"
        "so <Current-Task>\n Book a hotel \n</Current-Task>"
        "<suggested-response>Ask for dates</suggested-response>"
    )
    assert answer == ParsedAnswer(
        observations="* a", current_task="Book a hotel", suggested_response="Ask for dates"
    )


@pytest.mark.parametrize(
    ("answer", "task"),
    [
        ("* a\n<current-task>\nBook\n</current-task>", "Book"),
        ("* a <current-task>Book</current-task>", None),
        ("* a", None),
        ("<current-task>  </current-task>", None),
        ("<current-task>Book", None),
    ],
)
def test_parse_answer__hint_that_was_not_asked_for_needs_lines_of_its_own(
    answer: str, task: str | None
) -> None:
    assert parse(answer, hints=NO_HINTS).current_task == task


def test_parse_answer__title_only_if_it_was_asked_for() -> None:
    answer = "* a\n<thread-title>\nTravel\n</thread-title>"
    assert parse(answer, with_title=True).thread_title == "Travel"
    assert parse(answer).thread_title is None
    assert parse(answer).observations == "* a"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("<observations>\nA summary.\n</observations>", "A summary."),
        ("All in one sentence.", "All in one sentence."),
        ("<observations>\nUnclosed text.", "Unclosed text."),
        ("Sure:\n* a", "* a"),
        ("<current-task>\nBook\n</current-task>", ""),
        (" ", ""),
    ],
)
def test_parse_answer__whole_text_of_reflector(answer: str, text: str) -> None:
    assert parse(answer, keep_whole=True).observations == text


@pytest.mark.parametrize(
    ("answer", "values"),
    [
        ("<mood>\nhappy\n</mood>", {"mood": "happy"}),
        ('<extracted-values>{"mood": "sad", "city": ""}</extracted-values>', {"mood": "sad"}),
        (
            '<mood>happy</mood><extracted-values>\n```json\n{"mood": "sad"}\n```\n'
            "</extracted-values>",
            {"mood": "sad"},
        ),
        ("<mood>happy</mood><extracted-values>{broken</extracted-values>", {"mood": "happy"}),
        ('<extracted-values>["mood"]</extracted-values>', {}),
        ('<extracted-values>{"other": 1, "mood": null}</extracted-values>', {}),
        ("<mood> </mood>", {}),
    ],
)
def test_parse_answer__values_of_extractors(answer: str, values: dict[str, Any]) -> None:
    parsed = parse(f"* a\n{answer}", slugs=["mood", "city"])
    assert parsed.values == values and parsed.observations == "* a"


def parse_threads(answer: str, *thread_ids: str) -> dict[str, str]:
    parsed = parsing.parse_thread_answers(answer, thread_ids, hints=ContinuationHints())
    return {thread_id: item.observations for thread_id, item in parsed.items()}


@pytest.mark.parametrize(
    ("answer", "observations"),
    [
        (
            '<observations>\n<thread id="t1">\n* a\n</thread>\n<thread id="t2">\n* b\n</thread>\n'
            "</observations>",
            {"t1": "* a", "t2": "* b"},
        ),
        ('<thread id="t1">* a</thread> and more', {"t1": "* a", "t2": ""}),
        ('<thread id="t1">* a</thread><thread id="t1">* c</thread>', {"t1": "* a\n* c", "t2": ""}),
        ('<thread id="t9">\n* a\n</thread>', {"t1": "", "t2": ""}),
        ("<observations>\n* a\n</observations>", {"t1": "", "t2": ""}),
        ("", {"t1": "", "t2": ""}),
    ],
)  # fmt: skip
def test_parse_thread_answers__one_for_each_thread(
    answer: str, observations: dict[str, str]
) -> None:
    assert parse_threads(answer, "t1", "t2") == observations


def test_parse_thread_answers__hints_of_each_thread() -> None:
    parsed = parsing.parse_thread_answers(
        '<observations>\n<thread id="a&quot;b">\nDate: Jan 1, 2025\n* 🔴 (10:00) x\n'
        "<current-task>Book</current-task>\n</thread>\n</observations>",
        ['a"b'],
        hints=ContinuationHints(),
    )
    assert parsed['a"b'].observations == "Date: Jan 1, 2025\n* 🔴 (10:00) x"
    assert parsed['a"b'].current_task == "Book"


def test_parse_thread_answers__single_thread_needs_no_tag() -> None:
    assert parse_threads("<observations>\n* a\n</observations>", "t1") == {"t1": "* a"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc " * 600, True),
        ("abc " * 400, False),
        ("\n".join(f"* line {n} of {n * 7919 % 1000} things " + "word" * n for n in range(40)),
         False),
        ("z" * 50_001, True),
        ("\n".join([f"* {n} is the same as all the others" for n in range(30)]
                   + ["* this very line is repeated often"] * 40), True),
        ("", False),
    ],
)  # fmt: skip
def test_is_degenerate__finds_repetition(text: str, expected: bool) -> None:
    assert parsing.is_degenerate(text) is expected
