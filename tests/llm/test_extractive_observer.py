from datetime import date
from time import monotonic

import pytest

from mastra_memory import llm
from mastra_memory.exceptions import ProviderRefused
from mastra_memory.llm import extractive, relative_dates, sentences, transcript_reader
from mastra_memory.llm.extractive_observer import observe

WEDNESDAY = date(2025, 6, 18)


def observe_text(transcript: str, *, previous: str = "", instructions: str = "") -> str:
    """Return the answer for a transcript, in the tags of the Observer's prompt."""
    prompt = f"<new-messages>\n{transcript}\n</new-messages>"
    if previous:
        prompt = f"<previous-observations>\n{previous}\n</previous-observations>\n\n{prompt}"
    return observe(instructions, prompt)


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("I went there yesterday.", ["meaning Jun 17, 2025"]),
        ("We met last Friday.", ["meaning Jun 13, 2025"]),
        ("Let's meet on Friday.", ["meaning Jun 20, 2025"]),
        ("I fly next Friday.", ["meaning Jun 27, 2025"]),
        ("It was the day before yesterday.", ["meaning Jun 16, 2025"]),
        ("Two weeks ago I moved.", ["estimated Jun 4, 2025"]),
        ("I bought it 3 days ago.", ["meaning Jun 15, 2025"]),
        ("a few days ago", ["estimated Jun 15, 2025"]),
        ("It opens in 3 months.", ["estimated Sep 2025"]),
        ("a couple of years ago", ["estimated 2023"]),
        ("next month", ["meaning Jul 2025"]),
        ("last weekend", ["meaning Jun 14-15, 2025"]),
        ("last week", ["meaning Jun 9-15, 2025"]),
        ("last year", ["meaning 2024"]),
        ("We marry in January.", ["meaning Jan 2025"]),
        ("since last June", ["meaning Jun 2024"]),
        ("on June 5th", ["meaning Jun 5, 2025"]),
        ("the 5th of July", ["meaning Jul 5, 2025"]),
        ("yesterday, and again next month", ["meaning Jun 17, 2025", "meaning Jul 2025"]),
        ("昨天我去了北京。", ["meaning Jun 17, 2025"]),
        ("on June 5, 2022, and in June 2022", []),
        ("on February 30", []),
        ("It may rain.", []),
    ],
)
def test_find_date_notes(text: str, notes: list[str]) -> None:
    assert relative_dates.find_date_notes(text, WEDNESDAY) == notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("I saw Dr. Smith. He left.", ["I saw Dr. Smith.", "He left."]),
        ("我买了车。很贵！", ["我买了车。", "很贵！"]),
        ("# Title\n- a\n- b", ["Title", "a", "b"]),
        ("Run this:\n```\nx = 1. y\n```\nDone.", ["Run this:", "Done."]),
        ("", []),
    ],
)
def test_split_sentences(text: str, expected: list[str]) -> None:
    assert sentences.split_sentences(text) == expected


def test_informativeness__small_talk_is_below_statements() -> None:
    texts = ["That sounds great!", "How are you?", "My sister Ann moved to Lyon in 2019."]
    ranking = sentences.Informativeness(texts)
    small_talk, question, statement = map(ranking.score, texts)
    assert max(small_talk, question) < 2 < statement


def test_read_entries__days_times_names_and_continuations() -> None:
    entries = transcript_reader.read_entries(
        "Jan 1 2025:\nUser (12:05 AM): Ann: one\ntwo\nAssistant: Bob: three\n"
        "Jan 2 2025:\nUser (1:00 PM): Ann: four"
    )
    assert [(e.day, e.clock, e.author, e.text) for e in entries] == [
        (date(2025, 1, 1), "00:05", "Ann", "one\ntwo"),
        (date(2025, 1, 1), "00:05", "Bob", "three"),
        (date(2025, 1, 2), "13:00", "Ann", "four"),
    ]


def test_observe__facts_in_the_format_of_the_log() -> None:
    answer = observe_text(
        "Dec 4 2025:\n"
        "User (2:30 PM): Hi! I work as a nurse in Hamburg, and I fly to Rome next Friday.\n"
        "Assistant (2:31 PM): That sounds great!\n"
        "Dec 5 2025:\n"
        "User (9:00 AM): My daughter Emma is allergic to peanuts."
    )
    assert answer == (
        "<observations>\n"
        "Date: Dec 4, 2025\n"
        "* 🔴 (14:30) User: I work as a nurse in Hamburg, and I fly to Rome next Friday."
        " (meaning Dec 12, 2025)\n"
        "Date: Dec 5, 2025\n"
        "* 🔴 (09:00) User: My daughter Emma is allergic to peanuts.\n"
        "</observations>"
    )


def test_observe__outcomes_of_tools_are_nested() -> None:
    answer = observe_text(
        "Dec 4 2025:\n"
        "User (2:30 PM): Please check the weather in Rome and book a flight.\n"
        'Tool Call getWeather: city: "Rome"\n'
        'Tool Result getWeather: {\n  "temp": 21\n}\n'
        'Tool Call book: city: "Rome"\n'
        "Tool Error book: no seats left\n"
        "Tool Call pay: sum: 3\n"
        "Tool Denied pay: not allowed"
    )
    assert answer.split("\n")[3:-1] == [
        "* 🟡 (14:30) Assistant called getWeather, book, pay (3 calls)",
        "  * -> getWeather: temp : 21",
        "  * -> book: failed: no seats left",
        "  * -> pay: denied: not allowed",
    ]


def test_observe__attachments_are_named() -> None:
    answer = observe_text(
        "Dec 4 2025:\nUser (2:30 PM): Look\nImage: [Image #1: a.png]\nFile: [File #1: b.pdf]"
    )
    assert answer.split("\n")[2:-1] == [
        "* 🟡 (14:30) User attached a.png",
        "* 🟡 (14:30) User attached b.pdf",
    ]


def test_observe__does_not_repeat() -> None:
    line = "I live in Paris with my two cats."
    answer = observe_text(
        f"Jan 2 2025:\nUser (10:00 AM): {line} I work at Airbus.\n"
        "User (10:01 AM): I work at Airbus.",
        previous=f"Date: Jan 1, 2025\n* 🔴 (10:00) User: {line}",
    )
    assert "Paris" not in answer
    assert answer.count("Airbus") == 1


def test_observe__threads_keep_their_tags() -> None:
    answer = observe_text(
        '<thread id="a">\nJan 1 2025:\nUser (10:00 AM): My name is Ann Miller.\n</thread>\n'
        '<thread id="b">\nJan 2 2025:\nUser (10:00 AM): I moved to Oslo in 2020.\n</thread>'
    )
    assert answer == (
        "<observations>\n"
        '<thread id="a">\n'
        "Date: Jan 1, 2025\n* 🔴 (10:00) User: My name is Ann Miller.\n</thread>\n"
        '<thread id="b">\n'
        "Date: Jan 2, 2025\n* 🔴 (10:00) User: I moved to Oslo in 2020.\n</thread>\n"
        "</observations>"
    )


def test_observe__open_request_and_title_if_they_are_asked_for() -> None:
    transcript = (
        "Jan 2 2025:\nUser (10:00 AM): I need a new bike. Can you compare the Cube and Trek?"
    )
    assert "<current-task>" not in observe_text(transcript)
    answer = observe_text(transcript, instructions="<current-task> <thread-title>")
    assert "<current-task>\nCan you compare the Cube and Trek?\n</current-task>" in answer
    assert "<thread-title>\nI need a new bike\n</thread-title>" in answer
    answered = f"{transcript}\nAssistant (10:01 AM): Both are good."
    assert "<current-task>" not in observe_text(answered, instructions="<current-task>")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "你好！我昨天在北京买了一台新电脑，花了8000元。谢谢",
            "我昨天在北京买了一台新电脑，花了8000元。",
        ),
        ("Ich heiße Jürgen und wohne seit 2019 in Köln.", "Jürgen"),
        ("Привет! Меня зовут Иван, я живу в Москве.", "Меня зовут Иван, я живу в Москве."),
        ("私は毎朝コーヒーを飲みます。犬が二匹います。", "私は毎朝コーヒーを飲みます。"),
        ("أعيش في القاهرة منذ عام 2015. كيف حالك؟", "أعيش في القاهرة منذ عام 2015."),
        ("ผมชื่อสมชาย ผมอยู่กรุงเทพ", "ผมชื่อสมชาย"),
    ],
)
def test_observe__other_languages(text: str, kept: str) -> None:
    assert kept in observe_text(f"Jan 2 2025:\nUser (10:00 AM): {text}")


@pytest.mark.parametrize("text", ["", "ok", "thanks!"])
def test_observe__small_talk_alone_is_one_item_at_most(text: str) -> None:
    answer = observe_text(f"Jan 2 2025:\nUser (10:00 AM): {text}")
    assert answer.startswith("<observations>\n")
    assert answer.count("* ") <= 1


@pytest.mark.parametrize("unit", ["lorem ipsum Dolor 42. ", "\n", "<new-messages>\n"])
def test_observe__huge_message_takes_seconds(unit: str) -> None:
    text = unit * (20_000_000 // len(unit))
    started = monotonic()
    answer = observe_text(f"Jan 2 2025:\nUser (10:00 AM): {text}")
    assert monotonic() - started < 30
    assert len(answer) < 20_000


def test_generate__structured_output_is_refused() -> None:
    request = llm.TextRequest(
        purpose=llm.Purpose.OBSERVATION, instructions="", prompt="", output={"type": "object"}
    )
    with pytest.raises(ProviderRefused):
        extractive.generate(request)
